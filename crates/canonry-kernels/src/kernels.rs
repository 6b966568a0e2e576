//! Which kernels the processor can run.

/// A set of kernels that this processor can run: a value of this type is the proof. The default runs on every
/// processor and is not the fastest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Kernels(KernelKind);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelKind {
    /// AMX tiles for products, AVX-512 for everything else.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// What rten offers for the processor: AVX-512, AVX2, NEON, or plain code.
    #[default]
    Portable,
}

impl Kernels {
    /// The fastest kernels that the processor and the system allow.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// All kernels that the processor and the system allow, the fastest first.
    pub fn available() -> Vec<Self> {
        let mut available = Vec::with_capacity(3);
        #[cfg(target_arch = "x86_64")]
        if avx512() {
            if crate::tiles::permitted() {
                available.push(Self(KernelKind::Amx));
            }
            available.push(Self(KernelKind::Avx512));
        }
        available.push(Self(KernelKind::Portable));
        available
    }

    /// The name for reports: `amx`, `avx512` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            KernelKind::Amx => "amx",
            #[cfg(target_arch = "x86_64")]
            KernelKind::Avx512 => "avx512",
            KernelKind::Portable => "portable",
        }
    }

    /// How many rows should go through a layer's matrices together: as many as are multiplied at once, so that the
    /// widest activations leave most of the L2 cache to the weights.
    pub fn block_rows(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            KernelKind::Amx | KernelKind::Avx512 => crate::panels::BLOCK,
            KernelKind::Portable => 64,
        }
    }

    pub(crate) fn kind(self) -> KernelKind {
        self.0
    }
}

/// True on Cascade Lake, Cooper Lake, Ice Lake, Zen 4 and their successors.
#[cfg(target_arch = "x86_64")]
fn avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}
