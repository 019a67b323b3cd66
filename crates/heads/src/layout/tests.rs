use super::*;

fn layout() -> HeadLayout {
    HeadLayout::new([
        (Attention::EncEnc, LayerShape::plain(2, 3, 6)),
        (Attention::DecDec, LayerShape::plain(4, 5, 10)),
    ])
}

#[test]
fn a_head_outside_the_model_is_refused_with_the_valid_range() {
    for (name, expected) in [
        ("enc-enc:3:1", "layers are numbered 1 to 2"),
        ("enc-enc:2:4", "heads are numbered 1 to 3"),
        ("self:1:1", "it has enc-enc, dec-dec"),
    ] {
        let message = layout().check(name.parse().unwrap()).unwrap_err().to_string();
        assert!(message.ends_with(expected), "{message}");
    }
    layout().check("dec-dec:4:5".parse().unwrap()).unwrap();
}

/// Six heads in two groups: the first group is removed, and the second has lost a head.
#[test]
fn keys_and_values_stay_as_long_as_a_head_reads_them() {
    let shape = LayerShape { layers: 1, heads: 6, key_value_heads: 2, d_head: 4 };
    let layout = HeadLayout::new([(Attention::SelfAttention, shape)]);
    let removed = "self:1:1+self:1:2+self:1:3+self:1:5".parse().unwrap();
    let module = layout.without(&removed).unwrap().module(Attention::SelfAttention, 0);
    assert_eq!((module.kept_key_values(), module.kept), (vec![1], vec![3, 5]));
    assert_eq!(layout.module(Attention::SelfAttention, 0).kept_key_values(), [0, 1]);
}

#[test]
fn all_but_one_are_the_others_of_its_layer() {
    let others = layout().all_but("enc-enc:2:2".parse().unwrap()).unwrap();
    assert_eq!(others.brief(), "enc-enc:2:1+enc-enc:2:3");
    assert_eq!(others.with("enc-enc:2:2".parse().unwrap()).brief(), "3 heads");
    assert_eq!(others.without("enc-enc:2:3".parse().unwrap()).to_string(), "enc-enc:2:1");
    assert!(layout().all_but("enc-enc:2:4".parse().unwrap()).is_err());
}

#[test]
fn removed_heads_are_gone_and_the_others_keep_their_numbers() {
    let set = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<HeadSet>();
    let layout = layout().without(&set(&["enc-enc:1:2"])).unwrap();
    let layout = layout.without(&set(&["enc-enc:1:1", "enc-enc:1:3", "dec-dec:2:1"])).unwrap();
    assert_eq!([0, 1].map(|layer| layout.kept(Attention::EncEnc, layer)), [vec![], vec![0, 1, 2]]);
    assert_eq!(layout.kept(Attention::DecDec, 1), [1, 2, 3, 4]);
    assert_eq!((layout.heads().len(), layout.removed().len()), (26 - 4, 4));
    let all = layout.heads().into_iter().collect();
    for (heads, expected) in [(set(&["dec-dec:2:1"]), "has been removed"), (all, "no head would be left")] {
        let message = layout.without(&heads).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// The encoder first, then in each decoder layer self-attention before cross-attention; no modules without heads.
#[test]
fn modules_are_in_the_order_of_computation() {
    let shape = LayerShape::plain(2, 2, 4);
    let all = [Attention::EncEnc, Attention::EncDec, Attention::DecDec];
    let layout = HeadLayout::new(all.map(|attention| (attention, shape)));
    let from = |names: &str| -> Vec<String> {
        let modules = layout.modules_from(&names.parse().unwrap());
        modules.into_iter().map(|(attention, layer)| format!("{attention}:{}", layer + 1)).collect()
    };
    assert_eq!(from("enc-enc:2:1"), ["enc-enc:2", "dec-dec:1", "enc-dec:1", "dec-dec:2", "enc-dec:2"]);
    assert_eq!(from("dec-dec:1:1+dec-dec:1:2+dec-dec:2:1"), ["enc-dec:1", "dec-dec:2", "enc-dec:2"]);
    assert!(from("").is_empty());
}

#[test]
fn lists_are_read_as_people_write_them() {
    let of_one = HeadLayout::new([(Attention::SelfAttention, LayerShape::plain(3, 6, 12))]);
    let expected = "self:1:2+self:3:6".parse().unwrap();
    for text in ["1:2, 3:6", "self:3:6+self:1:2", "heads: [L1H2, L3H6]", "# all\n- '1:2' # one\n- L3H6\n"] {
        assert_eq!(of_one.list(text).as_ref(), Ok(&expected), "{text}");
    }
    let of_two = layout(); // in which a name without its attention type is ambiguous
    for (layout, text, expected) in [
        (&of_one, "L0H2", "`self:0:2` is not a head"),
        (&of_one, "- [1, 2]", "`1` is not a head"),
        (&of_one, "L4H2", "no layer 4 of `self`"),
        (&of_one, "1:2 L1H2", "`self:1:2` occurs twice"),
        (&of_one, "# none", "the list has no head"),
        (&of_two, "L1H2", "`L1H2` is not a head"),
    ] {
        let message = layout.list(text).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(of_two.list("enc-enc:1:2").unwrap().names(), "enc-enc:1:2");
}
