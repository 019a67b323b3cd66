use super::*;
use crate::{Attention, HeadLayout, LayerShape, Projections, Weights};

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

fn layer(weights: &Weights) -> MultiHeadAttention {
    let heads = HeadLayout::new([(Attention::SelfAttention, LayerShape::plain(1, 3, 12))]);
    let heads = heads.module(Attention::SelfAttention, 0);
    let projections = Projections::new(["q", "k", "v", "out"].map(|part| format!("a.{part}_proj")));
    let module =
        families::parts::Module::take(&mut &*weights, &projections, heads, 12, ([true; 2], false)).unwrap();
    let scores = (module.divisor, module.distances.into(), module.cap);
    MultiHeadAttention::new(module.maps, &module.heads, scores)
}

fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

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

/// One bias for all queries or one per query; numbers of keys that the kernel needs padded and numbers that it does not.
#[test]
fn keys_in_excess_have_no_part_in_attention() {
    for (d_head, keys) in [(4, 15), (4, 5), (4, 4), (16, 24), (16, 23), (64, 31)] {
        let tensor = |size: [i64; 4]| Tensor::randn(size, OPTIONS);
        let [q, k, v] = [5, keys, keys].map(|rows| tensor([2, 3, rows, d_head]));
        for queries in [1, 5] {
            let bias = Tensor::zeros([2, 1, queries, keys], OPTIONS);
            let _ = bias.get(1).narrow(2, 1, 2).fill_(f64::NEG_INFINITY);
            let found = fused(&q, &k, &v, &Visible::Under(&bias), 2.0);
            let gap = gap(&found, &attention_weights(&q, &k, &bias, 2.0, None).matmul(&v));
            assert!(gap < 1e-12, "{keys} keys of {d_head}, {queries} rows of bias: {gap:e}");
        }
    }
}
