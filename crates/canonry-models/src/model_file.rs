//! Reads a model file: a safetensors container whose header describes the model completely.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde::Deserialize;

use crate::calibration::Calibration;

/// The layout of tensors and header that this code reads.
const FORMAT: u32 = 2;
/// The maximum length of a header; the real one has 8 KB.
const LONGEST_HEADER: u64 = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    #[error("read the model file: {0}")]
    Container(&'static str),
    #[error("read the model file's header: {0}")]
    Header(#[from] serde_json::Error),
    #[error("read the model file: {0} is not supported")]
    Unsupported(String),
    /// A tensor that is missing or has another shape than the header says.
    #[error("read tensor {name} of the model file: {problem}")]
    Tensor { name: String, problem: &'static str },
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ModelHeader {
    format: u32,
    pub(crate) model_id: String,
    architecture: String,
    pub(crate) dimension: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) token_limit: usize,
    pooling: String,
    pub(crate) lower_case: bool,
    pub(crate) calibration: Calibration,
    pub(crate) token_vectors: Option<TokenHead>,
}

/// The model's second head, which makes a small vector for each of the first tokens of a text.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct TokenHead {
    pub(crate) width: usize,
    pub(crate) limit: usize,
}

#[derive(Debug)]
pub(crate) struct ModelFile {
    bytes: Cow<'static, [u8]>,
    header: ModelHeader,
    tensors: HashMap<String, Tensor>,
}

#[derive(Debug)]
struct Tensor {
    kind: String,
    shape: Vec<usize>,
    place: Range<usize>,
}

impl ModelFile {
    pub(crate) fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, ModelFileError> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or(ModelFileError::Container("it is too short"))?;
        let length = u64::from_le_bytes(*length);
        if length > LONGEST_HEADER || length > rest.len() as u64 {
            return Err(ModelFileError::Container("its header is longer than the file, or than a header may be"));
        }
        let (json, data) = rest.split_at(length as usize);
        let data_start = bytes.len() - data.len();
        let mut entries: HashMap<String, serde_json::Value> = serde_json::from_slice(json)?;
        let metadata = entries.remove("__metadata__").unwrap_or_default();
        let told = metadata.get("canonry").and_then(serde_json::Value::as_str);
        let header: ModelHeader =
            serde_json::from_str(told.ok_or(ModelFileError::Container("it has no description"))?)?;
        header.check()?;
        let tensors = entries
            .into_iter()
            .map(|(name, entry)| {
                let entry: TensorEntry = serde_json::from_value(entry)?;
                let [start, end] = entry.data_offsets;
                if start > end || end > data.len() {
                    return Err(ModelFileError::Tensor { name, problem: "it lies outside the file" });
                }
                let place = data_start + start..data_start + end;
                Ok((name, Tensor { kind: entry.dtype, shape: entry.shape, place }))
            })
            .collect::<Result<_, ModelFileError>>()?;
        Ok(Self { bytes, header, tensors })
    }

    pub(crate) fn header(&self) -> &ModelHeader {
        &self.header
    }

    pub(crate) fn rows(&self, name: &str) -> Result<usize, ModelFileError> {
        let tensor = self.tensors.get(name).ok_or_else(|| wrong(name, "it is absent"))?;
        tensor.shape.first().copied().ok_or_else(|| wrong(name, "it is no matrix"))
    }

    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelFileError> {
        let bytes = &self.bytes[self.place(name, "F32", 4, shape)?];
        let (values, _) = bytes.as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(wrong(name, "it contains numbers that are not finite"));
        }
        Ok(values)
    }

    pub(crate) fn codes(&self, name: &str, shape: &[usize]) -> Result<Vec<i8>, ModelFileError> {
        let place = self.place(name, "I8", 1, shape)?;
        Ok(self.bytes[place].iter().map(|byte| byte.cast_signed()).collect())
    }

    /// The position of a large table of codes in [`bytes`](Self::into_bytes), so that it is never copied.
    pub(crate) fn codes_place(&self, name: &str, shape: &[usize]) -> Result<Range<usize>, ModelFileError> {
        self.place(name, "I8", 1, shape)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, ModelFileError> {
        let place = self.place(name, "U8", 1, &[self.rows(name)?])?;
        std::str::from_utf8(&self.bytes[place]).map_err(|_| wrong(name, "it is not UTF-8"))
    }

    pub(crate) fn into_bytes(self) -> Cow<'static, [u8]> {
        self.bytes
    }

    fn place(&self, name: &str, kind: &str, width: usize, shape: &[usize]) -> Result<Range<usize>, ModelFileError> {
        let tensor = self.tensors.get(name).ok_or_else(|| wrong(name, "it is absent"))?;
        if tensor.kind != kind {
            return Err(wrong(name, "its numbers are of another kind"));
        }
        if tensor.shape != shape || tensor.place.len() != shape.iter().product::<usize>() * width {
            return Err(wrong(name, "its shape is not what the header promises"));
        }
        Ok(tensor.place.clone())
    }
}

impl ModelHeader {
    fn check(&self) -> Result<(), ModelFileError> {
        if self.format != FORMAT {
            return Err(ModelFileError::Unsupported(format!("format {}", self.format)));
        }
        if self.architecture != "bert" {
            return Err(ModelFileError::Unsupported(format!("architecture {:?}", self.architecture)));
        }
        if self.pooling != "mean" {
            return Err(ModelFileError::Unsupported(format!("pooling {:?}", self.pooling)));
        }
        if self.heads == 0 || self.dimension == 0 || !self.dimension.is_multiple_of(self.heads) {
            return Err(ModelFileError::Unsupported(format!("{} heads over {}", self.heads, self.dimension)));
        }
        if let Some(head) = self.token_vectors
            && (head.width == 0 || head.width > 255 || head.limit == 0)
        {
            return Err(ModelFileError::Unsupported(format!("{} token vectors of {}", head.limit, head.width)));
        }
        if self.token_limit < 3 {
            return Err(ModelFileError::Unsupported(format!("a limit of {} tokens", self.token_limit)));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct TensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

fn wrong(name: &str, problem: &'static str) -> ModelFileError {
    ModelFileError::Tensor { name: name.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::{ModelFile, ModelFileError};
    use serde_json::json;

    fn file(header: &serde_json::Value, tensors: &serde_json::Value, data: &[u8]) -> Vec<u8> {
        let mut entries = tensors.clone();
        entries["__metadata__"] = json!({"canonry": header.to_string()});
        let json = entries.to_string();
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn header() -> serde_json::Value {
        json!({"format": 2, "model_id": "local:tiny", "architecture": "bert", "dimension": 4, "layers": 1, "heads": 2,
            "norm_epsilon": 1e-12, "token_limit": 8, "pooling": "mean", "lower_case": true,
            "calibration": {"anchors": [[0.0, 0.0], [1.0, 1.0]]}})
    }

    #[test]
    fn reads_tensors_as_their_header_describes_them() {
        let tensors = json!({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "I8", "shape": [1, 2], "data_offsets": [8, 10]}});
        let mut data = 1.5f32.to_le_bytes().to_vec();
        data.extend((-2.0f32).to_le_bytes());
        data.extend([255, 3]);
        let file = ModelFile::parse(file(&header(), &tensors, &data).into()).expect("valid");
        assert_eq!(file.floats("a", &[2]).expect("there"), [1.5, -2.0]);
        assert_eq!(file.codes("b", &[1, 2]).expect("there"), [-1, 3]);
        assert_eq!(file.rows("b").expect("there"), 1);
        let refused = file.floats("a", &[3]).expect_err("another shape").to_string();
        assert_eq!(refused, "read tensor a of the model file: its shape is not what the header promises");
        assert!(matches!(file.codes("c", &[1]), Err(ModelFileError::Tensor { problem: "it is absent", .. })));
    }

    #[test]
    fn refuses_what_it_cannot_run() {
        let message = |bytes: Vec<u8>| ModelFile::parse(bytes.into()).expect_err("refused").to_string();
        assert_eq!(message(b"short".to_vec()), "read the model file: it is too short");
        let endless = u64::MAX.to_le_bytes().to_vec();
        assert!(message(endless).contains("longer than the file"));
        for (key, value, told) in [
            ("format", json!(1), "format 1 is not supported"),
            ("pooling", json!("cls"), "pooling \"cls\" is not supported"),
            ("heads", json!(3), "3 heads over 4 is not supported"),
        ] {
            let mut other = header();
            other[key] = value;
            assert!(message(file(&other, &json!({}), &[])).contains(told), "{told}");
        }
        let outside = json!({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}});
        assert!(message(file(&header(), &outside, &[0; 4])).contains("outside the file"));
    }
}
