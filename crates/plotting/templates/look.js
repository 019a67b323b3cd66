(() => {
  const { maps, facts, nothing } = JSON.parse(document.getElementById("look").textContent);
  const buttons = [...document.querySelectorAll(".map button")];
  const part = (name) => document.querySelector(`#map .${name}`);
  const [keys, queries, field, cross] = ["keys", "queries", "field", "cross"].map(part);
  const [canvas, value, large] = [field.firstElementChild, document.getElementById("value"), document.getElementById("map")];
  const make = (name, text, parent) => {
    const element = document.createElement(name);
    element.textContent = text;
    parent?.append(element);
    return element;
  };

  // Weights of a head: a byte for each query and each key that it sees.
  const layers = new Map();
  const bytes = (map, layer) => {
    const name = `${map.attention}:${layer}`;
    if (!layers.has(name)) {
      const text = atob(map.layers[layer]);
      const all = new Uint8Array(text.length);
      for (let place = 0; place < all.length; place += 1) all[place] = text.charCodeAt(place);
      layers.set(name, all);
    }
    return layers.get(name);
  };
  const row = ({ map, layer, head }, query) => {
    const [length, width] = [map.queries.length, map.keys.length];
    const size = map.isCausal ? (length * (length + 1)) / 2 : length * width;
    const start = head * size + (map.isCausal ? (query * (query + 1)) / 2 : query * width);
    return bytes(map, layer).subarray(start, start + (map.isCausal ? query + 1 : width));
  };
  const weight = (byte) => (byte / 255) ** 2;
  const digits = (byte) => weight(byte).toFixed(byte > 25 ? 2 : 3);
  const of = (button) => {
    const [attention, layer, head] = button.dataset.head.split(":");
    return { map: maps.find((map) => map.attention === attention), layer: layer - 1, head: head - 1 };
  };

  let color = [];
  const readColor = () => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue("--map").trim();
    color = [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
  };
  readColor();
  // One hue, which the weight makes more or less transparent; of several weights in one pixel the greatest.
  const draw = (canvas, one, most) => {
    const [length, width] = [one.map.queries.length, one.map.keys.length];
    const step = Math.max(1, Math.ceil(Math.max(length, width) / most));
    [canvas.width, canvas.height] = [Math.ceil(width / step), Math.ceil(length / step)];
    const [red, green, blue] = color;
    const image = new ImageData(canvas.width, canvas.height);
    const { data } = image;
    for (let query = 0; query < length; query += 1) {
      const line = Math.floor(query / step) * canvas.width;
      row(one, query).forEach((byte, key) => {
        const place = 4 * (line + Math.floor(key / step));
        if (byte <= data[place + 3]) return;
        [data[place], data[place + 1], data[place + 2], data[place + 3]] = [red, green, blue, byte];
      });
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
  const small = () => buttons.forEach((button) => draw(button.firstElementChild, of(button), 64));
  setTimeout(small, 50); // after the first paint

  let shown = null; // the head on the large map, with the query and the key that are pointed at
  const point = (query, key) => {
    if (shown.query !== undefined) {
      queries.children[shown.query].classList.remove("on");
      keys.children[shown.key].classList.remove("on");
    }
    Object.assign(shown, { query, key });
    cross.hidden = query === undefined;
    value.textContent = "Point at the map, or move on it with the arrow keys, to read weights.";
    if (cross.hidden) return;
    queries.children[query].classList.add("on");
    keys.children[key].classList.add("on");
    [cross.style.left, cross.style.top] = [`calc(var(--cell) * ${key})`, `calc(var(--cell) * ${query})`];
    const byte = row(shown, query)[key];
    const found = byte === undefined ? "not seen" : digits(byte);
    value.textContent = `${shown.map.queries[query]} \u2192 ${shown.map.keys[key]}: ${found}`;
  };
  const labels = (parent, tokens) => parent.replaceChildren(...tokens.map((token) => make("span", token)));
  const numbered = (tokens, place) => `${place + 1} ${tokens[place]}`;
  const fill = (body) => {
    const { map } = shown;
    const lines = map.queries.map((_, query) => {
      const line = document.createElement("tr");
      const label = make("th", numbered(map.queries, query), line);
      label.scope = "row";
      label.dataset.value = query;
      const found = [...row(shown, query)].map((byte, key) => ({ byte, key })).sort((one, other) => other.byte - one.byte);
      for (let rank = 0; rank < 3; rank += 1) {
        const text = found[rank] ? `${numbered(map.keys, found[rank].key)}: ${digits(found[rank].byte)}` : "";
        const cell = make("td", text, line);
        if (text) cell.dataset.value = weight(found[rank].byte);
      }
      return line;
    });
    body.replaceChildren(...lines);
    for (const heading of document.querySelectorAll("#most .columns th")) heading.removeAttribute("aria-sort");
  };
  const show = (button) => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    const name = button.dataset.head;
    const [attention, layer, head] = name.split(":");
    document.getElementById("title").textContent = `${attention}, layer ${layer}, head ${head}`;
    shown = of(button);
    const { map } = shown;
    const cell = Math.round(Math.min(30, Math.max(12, 600 / Math.max(map.queries.length, map.keys.length))));
    large.style.setProperty("--cell", `${cell}px`);
    [canvas.style.width, canvas.style.height] = [map.keys, map.queries].map((tokens) => `${cell * tokens.length}px`);
    labels(keys, map.keys);
    labels(queries, map.queries);
    draw(canvas, shown, Infinity);
    point();
    fill(document.querySelector("#most tbody"));
    const list = document.createElement("dl");
    for (const [term, text] of facts[name] ?? []) {
      const line = make("div", "", list);
      if (text.length > 40) line.className = "long";
      make("dt", term, line);
      make("dd", text, line);
    }
    document.getElementById("card-body").replaceChildren(list.childElementCount ? list : make("p", nothing));
  };
  buttons.forEach((button) => button.addEventListener("click", () => show(button)));
  show(document.querySelector(".map button.needed") ?? buttons[0]);

  const at = (event) => {
    const box = field.getBoundingClientRect();
    const place = (offset, size, count) => Math.min(count - 1, Math.max(0, Math.floor((offset / size) * count)));
    point(
      place(event.clientY - box.top, box.height, shown.map.queries.length),
      place(event.clientX - box.left, box.width, shown.map.keys.length),
    );
  };
  field.addEventListener("pointermove", at);
  field.addEventListener("pointerdown", at);
  large.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const within = (place, count) => Math.min(count - 1, Math.max(0, place));
    const { query, key, map } = shown;
    if (query === undefined) point(0, 0);
    else point(within(query + step[0], map.queries.length), within(key + step[1], map.keys.length));
    cross.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColor();
    draw(canvas, shown, Infinity);
    small();
  });
})();
