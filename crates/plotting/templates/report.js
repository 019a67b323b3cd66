"use strict";
(() => {
  const minus = /\u2212/g;
  const make = (name, text, parent) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  document.documentElement.classList.add("script");

  // Tables: sort by a click on a heading, save as CSV.
  const key = (row, column) => {
    const cell = row.cells[column];
    const { value } = cell.dataset;
    return { text: cell.textContent.trim(), value: value === undefined ? undefined : Number(value) };
  };
  // What has no number, or no text, stands last in both directions.
  const order = (one, other, sign) => {
    if (one.value !== undefined && other.value !== undefined) return sign * (one.value - other.value);
    if (one.value !== undefined || other.value !== undefined) return one.value !== undefined ? -1 : 1;
    if (!one.text || !other.text) return (one.text ? 0 : 1) - (other.text ? 0 : 1);
    return sign * one.text.localeCompare(other.text, "en", { numeric: true });
  };
  const sort = (table, heading, column) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.querySelectorAll(".columns th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
    rows.sort((one, other) => order(one.key, other.key, up ? 1 : -1));
    body.append(...rows.map(({ row }) => row));
  };
  const quoted = (text) => {
    // Spreadsheets take these for formulas.
    const isFormula = /^[=@\t\r]/.test(text) || (/^[-+]/.test(text) && Number.isNaN(Number(text.replace(minus, "-"))));
    const safe = isFormula ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  // A number is saved in full where the cell is nothing but that number.
  const field = (cell) => {
    let text = cell.textContent.trim();
    const plain = text.replace(minus, "-");
    if (cell.dataset.value !== undefined && /^[-+]?[\d.]+(e[-+]?\d+)?$/.test(plain)) {
      text = String(Number(cell.dataset.value));
    }
    return quoted(text);
  };
  const save = (table) => {
    // Columns of several groups have the name of their group before their own.
    const groups = [...table.querySelectorAll(".groups th")].flatMap((group) => Array(group.colSpan).fill(group));
    const names = [...table.querySelector(".columns").cells].map((cell, column) => {
      const group = groups[column - 1];
      return quoted(group ? `${group.textContent.trim()}: ${cell.textContent.trim()}` : cell.textContent.trim());
    });
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(field));
    const lines = [names, ...rows].map((row) => row.join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = `${table.dataset.name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  for (const table of document.querySelectorAll(".table table")) {
    table.querySelectorAll(".columns th").forEach((heading, column) => {
      const button = make("button", heading.textContent);
      button.type = "button";
      heading.replaceChildren(button);
      button.addEventListener("click", () => sort(table, heading, column));
    });
    const button = make("button", "Save as CSV");
    button.type = "button";
    button.className = "save";
    button.setAttribute("aria-label", `Save as CSV: ${table.caption.querySelector("strong").textContent}`);
    button.addEventListener("click", () => save(table));
    table.closest(".scroll").after(button);
  }

  // Maps of heads: one head of each can be reached by Tab, the one that had the focus last; arrow keys move.
  const move = (button, event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    const cell = button.closest("td");
    const row = cell.parentElement;
    const lines = [...row.parentElement.rows];
    const next = lines[lines.indexOf(row) + step[0]]?.cells[cell.cellIndex + step[1]]?.querySelector("button");
    event.preventDefault();
    next?.focus();
  };
  for (const map of document.querySelectorAll(".map")) {
    const own = map.querySelectorAll("button");
    let reached = own[0];
    own.forEach((button) => {
      button.tabIndex = button === reached ? 0 : -1;
      button.addEventListener("focus", () => {
        reached.tabIndex = -1;
        button.tabIndex = 0;
        reached = button;
      });
      button.addEventListener("keydown", (event) => move(button, event));
    });
  }

  // Colours of maps by measure, a card for each head.
  const measure = document.getElementById("measure");
  if (!measure) return;
  const buttons = [...document.querySelectorAll(".map button")];
  const paint = () => {
    const { low, high } = measure.selectedOptions[0].dataset;
    document.getElementById("low").textContent = low;
    document.getElementById("high").textContent = high;
    for (const button of buttons) {
      const colors = button.dataset.colors.split(" ");
      [button.style.background, button.style.color] = colors.slice(2 * measure.selectedIndex);
    }
  };
  measure.addEventListener("change", paint);
  paint();

  const rows = new Map();
  const table = document.querySelector("#heads .table table");
  const headings = [...table.querySelectorAll(".columns th")].map((heading) => heading.textContent);
  for (const row of table.tBodies[0].rows) rows.set(row.cells[0].textContent, row);
  const texts = new Map();
  for (const row of document.querySelectorAll('[id^="texts-"] tbody tr')) {
    texts.set(row.cells[0].textContent, row.cells[1].textContent);
  }
  const { segments } = document.querySelector(".board").dataset;
  const list = (parent, text) => {
    const items = make("ol", "", parent);
    for (const one of text.split("; ")) {
      const item = make("li", `segment ${one}`, items);
      const found = texts.get(one.split(":")[0]);
      if (found) make("q", found, item);
    }
  };
  const show = (button) => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    const head = button.dataset.head;
    const [attention, layer, number] = head.split(":");
    document.getElementById("card-title").textContent = `${attention}, layer ${layer}, head ${number}`;
    const facts = document.createElement("dl");
    [...rows.get(head).cells].slice(1).forEach((cell, place) => {
      if (!cell.textContent) return;
      const line = make("div", "", facts);
      make("dt", headings[place + 1], line);
      const value = make("dd", "", line);
      if (cell.classList.contains("long")) line.className = "long";
      if (headings[place + 1] === segments) list(value, cell.textContent);
      else value.append(...[...cell.cloneNode(true).childNodes]);
    });
    document.getElementById("card-body").replaceChildren(facts);
  };
  for (const button of buttons) button.addEventListener("click", () => show(button));
})();
