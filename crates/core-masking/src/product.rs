//! `x Wᵀ + b` with the fastest kernel for this processor.
//!
//! In single precision libtorch multiplies matrices with MKL, which does not use the 512-bit vectors of AMD processors. oneDNN, also part
//! of libtorch, does and takes half the time. CTranslate2 makes the same choice:
//! <https://github.com/OpenNMT/CTranslate2/blob/6bf019e1bc95b4e9ffaf38f27e280f9c8ce95769/src/cpu/backend.cc>.
//!
//! libtorch exposes oneDNN's product only to PyTorch's compiler, as `mkldnn::_linear_pointwise`, which a one-line TorchScript module calls.
//! It has no derivative, so it is used only where none is needed.
use std::sync::LazyLock;

use tch::{CModule, Device, Kind, Tensor};

/// Multiply-adds from which on oneDNN is faster: it has a higher overhead, especially for the first product of a shape.
const MIN_MULTIPLY_ADDS: usize = 1 << 21;

/// oneDNN's product; absent if MKL is equally fast or libtorch was built without oneDNN.
static ONEDNN: LazyLock<Option<CModule>> = LazyLock::new(|| prefers_onednn().then(onednn).flatten());

/// Loads the module made by `scripts/onednn_product.py`.
fn onednn() -> Option<CModule> {
    CModule::load_data(&mut include_bytes!("../assets/onednn.pt").as_slice()).ok()
}

/// Returns true on AMD processors with 512-bit vectors; with shorter ones MKL is equally fast.
#[cfg(target_arch = "x86_64")]
fn prefers_onednn() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"AuthenticAMD" && std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn prefers_onednn() -> bool {
    false
}

/// Returns the name of the library that multiplies matrices in evaluation, for signatures: the last digits depend on it.
pub fn products() -> &'static str {
    if ONEDNN.is_some() { "oneDNN" } else { "libtorch" }
}

/// Returns `x Wᵀ + b`.
///
/// - `x`: `[.., in]`; `weight`: `[out, in]`; `bias`: `[out]`
/// - returns `[.., out]`
pub(crate) fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    match onednn_for(x, weight, bias) {
        Some(onednn) => by_onednn(onednn, x, weight, bias),
        None => x.linear(weight, bias),
    }
}

/// Writes [`linear`] to `room`.
///
/// - `room`: `[rows, out]`, of any precision; `x`: `[rows, in]`; `weight`: `[out, in]`; `bias`: `[out]`
pub(crate) fn linear_into(room: &mut Tensor, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) {
    match (onednn_for(x, weight, bias), bias) {
        (Some(onednn), _) => room.copy_(&by_onednn(onednn, x, weight, bias)),
        _ if room.kind() != x.kind() => room.copy_(&x.linear(weight, bias)),
        (None, Some(bias)) => drop(bias.addmm_out(room, x, &weight.tr())),
        (None, None) => drop(x.mm_out(room, &weight.tr())),
    }
}

/// Returns oneDNN's product if it is faster here and supports these tensors.
fn onednn_for(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Option<&'static CModule> {
    ONEDNN.as_ref().filter(|_| suits_onednn(x, weight, bias))
}

/// Returns true for large products in single precision on a CPU that need no gradient.
fn suits_onednn(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> bool {
    let suits = |tensor: &Tensor| {
        tensor.kind() == Kind::Float && tensor.device() == Device::Cpu && !tensor.requires_grad()
    };
    let multiply_adds = x.numel() * weight.size()[0] as usize;
    multiply_adds >= MIN_MULTIPLY_ADDS && [Some(x), Some(weight), bias].into_iter().flatten().all(suits)
}

/// [`linear`] for tensors that [oneDNN supports](suits_onednn), of any size.
fn by_onednn(onednn: &CModule, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    let found = match bias {
        Some(bias) => onednn.method_ts("with_bias", &[x, weight, bias]),
        None => onednn.forward_ts(&[x, weight]),
    };
    // mismatched shapes are the caller's mistake, as in libtorch's own product
    found.unwrap_or_else(|error| panic!("product of {:?} and {:?}: {error}", x.size(), weight.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -1 and 1.
    fn numbers(shape: &[i64], step: f64) -> Tensor {
        let count = shape.iter().product::<i64>();
        (Tensor::arange(count, (Kind::Float, Device::Cpu)) * step).sin().view(shape)
    }

    /// libtorch as we install it has both kernels, whichever this processor prefers. They agree, also on transposed tensors and on slices.
    #[test]
    fn onednn_gives_what_double_precision_gives() {
        let onednn = onednn().expect("libtorch has oneDNN");
        for (rows, inputs, outputs) in [(1, 3, 2), (7, 64, 65), (33, 130, 257)] {
            // views, except for a single row
            let x = numbers(&[2, rows, inputs], 1.3).transpose(0, 1);
            let weight = numbers(&[outputs + rows - 1, inputs], 0.7).narrow(0, rows - 1, outputs);
            let bias = numbers(&[outputs], 0.3);
            for bias in [None, Some(&bias)] {
                let found = by_onednn(&onednn, &x, &weight, bias);
                assert_eq!(found.size(), [rows, 2, outputs]);
                let wide = |tensor: &Tensor| tensor.to_kind(Kind::Double);
                let expected = wide(&x).linear(&wide(&weight), bias.map(wide).as_ref());
                let gap = (wide(&found) - expected).abs().max().double_value(&[]);
                // each product and each sum is off by at most half a unit in the last place, of numbers up to `inputs`
                let most = (inputs as f64 + 1.0).powi(2) * f64::from(f32::EPSILON);
                assert!(gap <= most, "{rows} x {inputs} x {outputs}: {gap:e}");
            }
        }
    }

    /// 512 x 64 x 64 multiply-adds are just enough.
    #[test]
    fn only_many_fixed_numbers_of_single_precision_suit_onednn() {
        let tensors = || [numbers(&[512, 64], 1.3), numbers(&[64, 64], 0.7), numbers(&[64], 0.3)];
        let suit = |[x, weight, bias]: &[Tensor; 3]| suits_onednn(x, weight, Some(bias));
        assert!(suit(&tensors()));
        for place in 0..3 {
            let other = |change: &dyn Fn(&Tensor) -> Tensor| {
                let mut all = tensors();
                all[place] = change(&all[place]);
                suit(&all)
            };
            assert!(!other(&|tensor| tensor.set_requires_grad(true)), "{place}");
            assert!(!other(&|tensor| tensor.to_kind(Kind::Double)), "{place}");
        }
        let [x, weight, bias] = tensors();
        assert!(!suits_onednn(&x.narrow(0, 0, 511), &weight, Some(&bias)));
        assert!(!suits_onednn(&x.narrow(0, 0, 0), &weight, Some(&bias)));
    }

    /// Large and small products, with and without a bias, in the precision of `room` or another: all kernels.
    #[test]
    fn what_is_written_to_a_room_is_the_product() {
        for rows in [512, 3] {
            let (x, weight, bias) = (numbers(&[rows, 64], 1.3), numbers(&[64, 64], 0.7), numbers(&[64], 0.3));
            for bias in [None, Some(&bias)] {
                for kind in [Kind::Float, Kind::Double] {
                    let mut room = Tensor::zeros([rows, 70], (kind, Device::Cpu)).narrow(1, 3, 64);
                    linear_into(&mut room, &x, &weight, bias);
                    let gap = (room - x.linear(&weight, bias)).abs().max().double_value(&[]);
                    assert!(gap < 1e-5, "{rows} rows: {gap:e}");
                }
            }
        }
    }
}
