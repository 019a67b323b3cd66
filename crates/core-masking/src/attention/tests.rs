use super::*;
use crate::pruning::without_heads;
use crate::{Attention, HeadLayout, LayerShape, Removal};

/// One layer of these heads, of which some are removed.
fn heads(shape: LayerShape, removed: &str) -> ModuleHeads {
    let layout = HeadLayout::new([(Attention::SelfAttention, shape)]);
    layout.without(&removed.parse().unwrap()).unwrap().module(Attention::SelfAttention, 0)
}

/// The weights without these heads.
fn cut(weights: &Weights, shape: LayerShape, removed: &str) -> Weights {
    let layout = HeadLayout::new([(Attention::SelfAttention, shape)]);
    let removed = removed.parse().unwrap();
    without_heads(weights, &layout, &removed, Removal::Cut, |_, _| projections()).unwrap()
}

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);

/// f64; 3 heads of 4, batch 2, query 5, key 7; the last two keys of the second row are hidden.
fn fixture() -> (Weights, Tensor, Tensor, Tensor) {
    let maps = ["q", "k", "v", "out"].into_iter().flat_map(|part| {
        let name = |kind| format!("a.{part}_proj.{kind}");
        [(name("weight"), vec![12, 12]), (name("bias"), vec![12])]
    });
    let inputs = [("x".to_owned(), vec![2, 5, 12]), ("memory".to_owned(), vec![2, 7, 12])];
    let drawn = Weights::drawn(maps.chain(inputs).collect(), 5, |_, shape| Tensor::randn(shape, OPTIONS));
    let bias = Tensor::zeros([2, 1, 1, 7], OPTIONS);
    let _ = bias.get(1).narrow(2, 5, 2).fill_(f64::NEG_INFINITY);
    let [x, memory] = ["x", "memory"].map(|name| drawn.get(name).unwrap());
    (drawn, x, memory, bias)
}

fn projections() -> Projections {
    Projections::new(["q", "k", "v", "out"].map(|part| format!("a.{part}_proj")))
}

fn layer(weights: &Weights) -> MultiHeadAttention {
    MultiHeadAttention::new(weights, &projections(), &heads(LayerShape::plain(1, 3, 12), "")).unwrap()
}

fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

/// Closing the gate of a head and deleting its columns of W_o must give the same output.
#[test]
fn masking_a_head_equals_pruning_it() {
    let open = Tensor::ones([1, 3], OPTIONS);
    for head in 0..3 {
        let (weights, x, memory, bias) = fixture();
        let layer = layer(&weights);
        let closed = open.index_fill(1, &Tensor::from(head), 0.0);
        let masked = layer.forward(&x, &memory, &bias, &closed, &Dropout::OFF);

        let _ = weights.get("a.out_proj.weight").unwrap().narrow(1, head * 4, 4).zero_();
        let pruned = layer.forward(&x, &memory, &bias, &open, &Dropout::OFF);
        let gap = gap(&masked, &pruned);
        assert!(gap < 1e-12, "head {head}: masked and pruned differ by {gap:e}");
    }
}

/// Whether the masked heads are taken from all or the kept ones are added up, for any of them.
#[test]
fn fewer_products_give_what_gates_give() {
    for (kind, tolerance) in [(Kind::Double, 1e-12), (Kind::Float, 1e-5)] {
        let (weights, x, memory, bias) = fixture();
        let shape = LayerShape::plain(1, 4, 12);
        let weights = cut(&weights.to_kind(kind), shape, "self:1:2");
        let layer = MultiHeadAttention::new(&weights, &projections(), &heads(shape, "self:1:2")).unwrap();
        let [x, memory, bias] = [x, memory, bias].map(|tensor| tensor.to_kind(kind));
        let open = Tensor::ones([1, 4], (kind, Device::Cpu));
        let memory = layer.keys_values(&memory);
        let context = layer.context(&x, &memory, &bias, (&open).into(), &Dropout::OFF);
        let whole = layer.merge_open(&context);
        for (pattern, gate) in (0..8).flat_map(|pattern| [(pattern, 1.0), (pattern, 1.5)]) {
            let values = [0, 1, 2].map(|place| if pattern >> place & 1 == 1 { gate } else { 0.0 });
            let gates = [values[0], 0.7, values[1], values[2]]; // a removed head's is not looked at
            let gates = Tensor::from_slice(&gates).to_kind(kind).view([1, 4]);
            let expected = layer.merge(context.shallow_clone(), (&gates).into());
            for whole in [None, Some(&whole)] {
                let gap = gap(&layer.merge_some(&context, &values, whole), &expected);
                assert!(gap < tolerance, "{values:?}, {kind:?}, {}: {gap:e}", whole.is_some());
            }
        }
    }
}

/// The layer is affine in ξ, so a gate at 1/2 lies midway between closed and open.
#[test]
fn half_open_gate_is_the_midpoint() {
    let (weights, x, memory, bias) = fixture();
    let layer = layer(&weights);
    let run =
        |gate| layer.forward(&x, &memory, &bias, &Tensor::from_slice2(&[[1.0, gate, 1.0]]), &Dropout::OFF);
    let gap = gap(&(run(0.5) * 2.0), &(run(0.0) + run(1.0)));
    assert!(gap < 1e-12, "not affine in the gate: {gap:e}");
}

/// With a bias for all queries alike and one for each, of keys that are copied to whole steps of the kernel and of keys that are not.
#[test]
fn keys_in_excess_have_no_part_in_attention() {
    for (d_head, keys) in [(4, 15), (4, 5), (4, 4), (16, 24), (16, 23), (64, 31)] {
        let tensor = |size: [i64; 4]| Tensor::randn(size, OPTIONS);
        let [q, k, v] = [5, keys, keys].map(|rows| tensor([2, 3, rows, d_head]));
        for queries in [1, 5] {
            let bias = Tensor::zeros([2, 1, queries, keys], OPTIONS);
            let _ = bias.get(1).narrow(2, 1, 2).fill_(f64::NEG_INFINITY);
            let found = fused(&q, &k, &v, &Visible::Under(&bias), 2.0);
            let gap = gap(&found, &attention_weights(&q, &k, &bias, 2.0).matmul(&v));
            assert!(gap < 1e-12, "{keys} keys of {d_head}, {queries} rows of bias: {gap:e}");
        }
    }
}

/// Equation 1 written out with explicit attention weights, against libtorch's fused kernel.
#[test]
fn open_gates_give_equation_one() {
    let (weights, x, memory, bias) = fixture();
    let layer = layer(&weights);
    let found = layer.forward(&x, &memory, &bias, &Tensor::ones([1, 3], OPTIONS), &Dropout::OFF);

    let project = |part: &str, input: &Tensor| {
        let parameter = |kind| weights.get(&format!("a.{part}_proj.{kind}")).unwrap();
        input.matmul(&parameter("weight").tr()) + parameter("bias")
    };
    let (q, k, v) = (project("q", &x), project("k", &memory), project("v", &memory));
    let contexts: Vec<Tensor> = (0..3)
        .map(|head| {
            let [q, k, v] = [&q, &k, &v].map(|all| all.narrow(2, head * 4, 4)); // [batch, position, d_head]
            let scores = q.matmul(&k.transpose(1, 2)) / 2.0 + bias.squeeze_dim(1); // sqrt(d_head) = 2
            scores.softmax(-1, Kind::Double).matmul(&v)
        })
        .collect();
    let expected = project("out", &Tensor::cat(&contexts, 2));
    let gap = gap(&found, &expected);
    assert!(gap < 1e-12, "fused and explicit attention differ by {gap:e}");
}

/// With keys hidden, and with a head removed.
#[test]
fn one_query_needs_no_keys_and_values() {
    let (weights, _, memory, bias) = fixture();
    let shape = LayerShape::plain(1, 3, 12);
    let pruned = cut(&weights, shape, "self:1:2");
    let pruned = MultiHeadAttention::new(&pruned, &projections(), &heads(shape, "self:1:2")).unwrap();
    for layer in [layer(&weights), pruned] {
        let open = Tensor::ones([1, 3], OPTIONS);
        let (first, kv) = (memory.narrow(1, 0, 1), layer.keys_values(&memory));
        let expected = layer.context(&first, &kv, &bias, (&open).into(), &Dropout::OFF);
        let gap = gap(&layer.first_context(&memory, &bias), &expected);
        assert!(gap < 1e-12, "{gap:e}");
    }
}

/// A row of gates for each example is what those examples give alone.
#[test]
fn each_row_of_the_batch_has_its_own_gates() {
    let (weights, x, memory, bias) = fixture();
    let layer = layer(&weights);
    let gates = Tensor::from_slice2(&[[0.0, 1.0, 0.3], [1.0, 0.0, 0.0]]);
    let together = layer.forward(&x, &memory, &bias, &gates, &Dropout::OFF);
    for row in 0..2 {
        let part = |all: &Tensor| all.narrow(0, row, 1);
        let alone = layer.forward(&part(&x), &part(&memory), &part(&bias), &part(&gates), &Dropout::OFF);
        let gap = gap(&part(&together), &alone);
        assert!(gap < 1e-12, "row {row} differs by {gap:e}");
    }
}
