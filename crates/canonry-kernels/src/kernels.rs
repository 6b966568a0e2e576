//! Which implementations the processor can run.

/// A set of implementations that this processor can run: having one is the proof that it can. The default is what
/// every processor runs, not the fastest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Kernels(KernelKind);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelKind {
    /// AMX tiles for the products, AVX-512 for the rest.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// What rten has for the processor: AVX-512, AVX2, NEON, or plain code.
    #[default]
    Portable,
}

impl Kernels {
    /// The fastest that the processor and the system allow.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// All that the processor and the system allow, the fastest first.
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

    /// A word for reports: `amx`, `avx512` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            KernelKind::Amx => "amx",
            #[cfg(target_arch = "x86_64")]
            KernelKind::Avx512 => "avx512",
            KernelKind::Portable => "portable",
        }
    }

    /// How many rows are best taken through a layer's matrices together: as many as are multiplied at once, so that
    /// the widest activations leave as much as can be of the second cache to the weights.
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

/// Cascade Lake, Cooper Lake, Ice Lake, Zen 4 and their successors.
#[cfg(target_arch = "x86_64")]
fn avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}
