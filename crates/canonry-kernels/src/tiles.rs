//! The tile registers of AMX, and the matrix products that use them.
#![expect(unsafe_code, reason = "the compiler has no stable intrinsics for AMX: it is reached by assembly")]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::marker::PhantomData;

use crate::coded_rows::TILE_ROWS;
use crate::lines::CacheLine;

pub(crate) const TILE: usize = 16;

/// Whether the processor has AMX for bytes and bf16 and the system allows this process to use it.
pub(crate) fn permitted() -> bool {
    /// CPUID bits (register EDX) for AMX with bf16, tiles and bytes. The standard library has names for them only on
    /// nightly.
    const AMX: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    is_x86_feature_detected!("avx512bf16") && __cpuid_count(7, 0).edx & AMX == AMX && ask_system()
}

/// The permission applies to the process: asking again changes nothing.
#[cfg(target_os = "linux")]
fn ask_system() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let answer: i64;
    // SAFETY: the call reads no memory of ours; a kernel that does not know it refuses with an error.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => answer, in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer == 0
}

#[cfg(not(target_os = "linux"))]
fn ask_system() -> bool {
    false
}

/// The configured tiles of this thread. Dropping this releases them, so that the system need not save them at each
/// thread switch. A thread has only one at a time.
///
/// Sums stay in the tiles from one block of assembly to the next, from a product to its store. That works because no
/// code is compiled with AMX's features: the compiler never uses a tile by itself.
pub(crate) struct Tiles {
    stays_in_its_thread: PhantomData<*const ()>,
}

#[repr(C, align(64))]
struct TileConfiguration([u8; 64]);

/// All eight tiles with sixteen rows of 64 bytes each.
static CONFIGURATION: TileConfiguration = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        bytes[16 + 2 * tile] = 64;
        bytes[48 + tile] = 16;
        tile += 1;
    }
    TileConfiguration(bytes)
};

/// Multiplies sixteen rows by the columns of two tiles, into tiles 0 and 1, with the instruction `$product`.
macro_rules! multiply_two {
    ($product:literal, $rows:expr, $stride:expr, $columns:expr) => {{
        let (rows, stride, columns): (&[CacheLine], usize, [&[CacheLine]; 2]) = ($rows, $stride, $columns);
        let steps = columns[0].len() / TILE;
        assert!(steps > 0 && columns[1].len() == columns[0].len());
        assert!(rows.len() >= (TILE_ROWS - 1) * stride + steps);
        // SAFETY: as in `multiply_square`, with 16 rows; any pattern of bits is a number, of bytes and of bf16.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1",
                "2:",
                "tileloadd tmm4, [{upper} + {stride}]",
                "tileloadd tmm6, [{left} + {line}]",
                concat!($product, " tmm0, tmm4, tmm6"),
                "tileloadd tmm7, [{right} + {line}]",
                concat!($product, " tmm1, tmm4, tmm7"),
                "add {upper}, 64", "add {left}, 1024", "add {right}, 1024",
                "dec {steps}",
                "jnz 2b",
                upper = inout(reg) rows.as_ptr() => _,
                left = inout(reg) columns[0].as_ptr() => _,
                right = inout(reg) columns[1].as_ptr() => _,
                stride = in(reg) stride * size_of::<CacheLine>(),
                line = in(reg) size_of::<CacheLine>(),
                steps = inout(reg) steps => _,
                options(nostack, readonly)
            );
        }
    }};
}

impl Tiles {
    /// # Safety
    ///
    /// [`permitted`] returned true, and no other `Tiles` lives in this thread: this one would overwrite its sums, and
    /// dropping either would release the tiles of both.
    pub(crate) unsafe fn configure() -> Self {
        // SAFETY: the caller knows that the instruction may be used; the configuration is 64 valid bytes. The compiler
        // never uses tiles by itself, so nothing of it is lost.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly)) }
        Self { stays_in_its_thread: PhantomData }
    }

    /// Multiplies 32 rows of bytes by two tiles of columns of signed bytes, into tiles 0 to 3.
    #[inline]
    pub(crate) fn multiply_square(&self, rows: &[CacheLine], stride: usize, columns: [&[CacheLine]; 2]) {
        let steps = columns[0].len() / TILE;
        assert!(steps > 0 && columns[1].len() == columns[0].len());
        assert!(rows.len() >= (2 * TILE_ROWS - 1) * stride + steps);
        // SAFETY: the asserts keep all loads within the slices: each step reads one line of 32 rows, which lie `stride`
        // lines apart, and sixteen lines of each column tile. The tiles are configured.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloadd tmm6, [{left} + {line}]",
                "tileloadd tmm4, [{upper} + {stride}]",
                "tdpbusd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {line}]",
                "tdpbusd tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{lower} + {stride}]",
                "tdpbusd tmm2, tmm5, tmm6",
                "tdpbusd tmm3, tmm5, tmm7",
                "add {upper}, 64", "add {lower}, 64", "add {left}, 1024", "add {right}, 1024",
                "dec {steps}",
                "jnz 2b",
                upper = inout(reg) rows.as_ptr() => _,
                lower = inout(reg) rows[TILE_ROWS * stride..].as_ptr() => _,
                left = inout(reg) columns[0].as_ptr() => _,
                right = inout(reg) columns[1].as_ptr() => _,
                stride = in(reg) stride * size_of::<CacheLine>(),
                line = in(reg) size_of::<CacheLine>(),
                steps = inout(reg) steps => _,
                options(nostack, readonly)
            );
        }
    }

    /// Multiplies 16 rows of bytes by two tiles of columns of signed bytes, into tiles 0 and 1.
    #[inline]
    pub(crate) fn multiply_wide(&self, rows: &[CacheLine], stride: usize, columns: [&[CacheLine]; 2]) {
        multiply_two!("tdpbusd", rows, stride, columns);
    }

    /// Multiplies 16 rows of bf16 by two tiles of columns of bf16, into tiles 0 and 1.
    #[inline]
    pub(crate) fn multiply_halves(&self, rows: &[CacheLine], stride: usize, columns: [&[CacheLine]; 2]) {
        multiply_two!("tdpbf16ps", rows, stride, columns);
    }

    /// Writes tiles 0 and 1 side by side: two lines for each of 16 rows, which lie `stride` lines apart.
    #[inline]
    pub(crate) fn store_wide(&self, to: &mut [CacheLine], stride: usize) {
        assert!(stride >= 2 && to.len() >= (TILE_ROWS - 1) * stride + 2);
        // SAFETY: the assert keeps all stores within the slice.
        unsafe {
            asm!(
                "tilestored [{to} + {stride}], tmm0",
                "tilestored [{to} + {stride} + 64], tmm1",
                to = in(reg) to.as_mut_ptr(), stride = in(reg) stride * size_of::<CacheLine>(),
                options(nostack)
            );
        }
    }

    /// Writes tiles 0 to 3 as 32 rows of two lines each.
    #[inline]
    pub(crate) fn store_square(&self, to: &mut [CacheLine; 64]) {
        // SAFETY: 32 rows of two lines are 64 lines.
        unsafe {
            asm!(
                "tilestored [{to} + {stride}], tmm0",
                "tilestored [{to} + {stride} + 64], tmm1",
                "tilestored [{to} + {stride} + 2048], tmm2",
                "tilestored [{to} + {stride} + 2112], tmm3",
                to = in(reg) to.as_mut_ptr(), stride = in(reg) 128usize,
                options(nostack)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: they were configured in this thread; nobody reads them after this.
        unsafe { asm!("tilerelease", options(nostack, nomem)) }
    }
}
