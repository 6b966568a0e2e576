//! The transformer: it turns token ids into one vector per text and small vectors of its first tokens.

use std::borrow::Cow;
use std::ops::Range;

use canonry_domain::TokenVectors;
use canonry_kernels::{
    AttentionBuffers, CodedRows, Epilogue, Heads, Kernels, Linear, attend, mean_direction, normalise, project,
};

use crate::embedder::TextEmbedding;
use crate::model_file::{ModelFile, ModelFileError, TokenHead};

/// A BERT-like encoder with mean pooling; its sizes come from the model file.
pub(crate) struct Encoder {
    kernels: Kernels,
    bytes: Cow<'static, [u8]>,
    words: Range<usize>,
    word_scales: Vec<f32>,
    positions: Vec<f32>,
    embedding_norm: Norm,
    layers: Vec<Layer>,
    token_head: Option<TokenProjection>,
    width: usize,
    heads: Heads,
}

/// Maps a token's state to its small vector.
struct TokenProjection {
    weights: Vec<f32>,
    head: TokenHead,
}

struct Layer {
    query_key_value: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    feed_forward_in: Linear,
    feed_forward_out: Linear,
    feed_forward_norm: Norm,
}

struct Norm {
    gains: Vec<f32>,
    biases: Vec<f32>,
    epsilon: f32,
}

#[derive(Default)]
pub(crate) struct EncoderBuffers {
    coded: CodedRows,
    states: Vec<f32>,
    query_key_value: Vec<f32>,
    attended: Vec<f32>,
    attention: AttentionBuffers,
    hidden: Vec<f32>,
}

impl Encoder {
    pub(crate) fn read(file: ModelFile, kernels: Kernels) -> Result<Self, ModelFileError> {
        let header = file.header();
        let width = header.dimension;
        fits(width)?;
        let norm = |name: &str| -> Result<Norm, ModelFileError> {
            Ok(Norm {
                gains: file.floats(&format!("{name}.gain"), &[width])?,
                biases: file.floats(&format!("{name}.bias"), &[width])?,
                epsilon: header.norm_epsilon,
            })
        };
        let linear = |name: &str, inputs: usize, outputs: usize| -> Result<Linear, ModelFileError> {
            let codes = file.codes(&format!("{name}.weight"), &[outputs, inputs])?;
            let scales = file.floats(&format!("{name}.scale"), &[outputs])?;
            let biases = file.floats(&format!("{name}.bias"), &[outputs])?;
            Ok(Linear::pack(kernels, &codes, inputs, scales, biases))
        };
        let layers = (0..header.layers)
            .map(|layer| {
                let at = |part: &str| format!("layers.{layer}.{part}");
                let hidden = file.rows(&at("feed_forward_in.weight"))?;
                fits(hidden)?;
                Ok(Layer {
                    query_key_value: linear(&at("query_key_value"), width, 3 * width)?,
                    attention_output: linear(&at("attention_output"), width, width)?,
                    attention_norm: norm(&at("attention_norm"))?,
                    feed_forward_in: linear(&at("feed_forward_in"), width, hidden)?,
                    feed_forward_out: linear(&at("feed_forward_out"), hidden, width)?,
                    feed_forward_norm: norm(&at("feed_forward_norm"))?,
                })
            })
            .collect::<Result<_, ModelFileError>>()?;
        let token_head = header
            .token_vectors
            .map(|head| {
                Ok::<_, ModelFileError>(TokenProjection {
                    weights: file.floats("tokens.weight", &[head.width, width])?,
                    head,
                })
            })
            .transpose()?;
        let vocabulary = file.rows("words.weight")?;
        Ok(Self {
            kernels,
            words: file.codes_place("words.weight", &[vocabulary, width])?,
            word_scales: file.floats("words.scale", &[vocabulary])?,
            positions: file.floats("positions", &[header.token_limit, width])?,
            embedding_norm: norm("embedding_norm")?,
            layers,
            token_head,
            width,
            heads: Heads { count: header.heads, size: width / header.heads },
            bytes: file.into_bytes(),
        })
    }

    /// The number of token ids that have a vector.
    pub(crate) fn vocabulary(&self) -> usize {
        self.word_scales.len()
    }

    /// One vector of length 1 per text, and the vectors of its tokens. The texts' rows lie one after another: there
    /// is no padding, and no text's vector depends on its neighbours.
    pub(crate) fn encode(&self, texts: &[&[u32]], buffers: &mut EncoderBuffers) -> Vec<TextEmbedding> {
        self.look_up(texts, buffers);
        for layer in &self.layers {
            self.attend(layer, texts, buffers);
            self.feed_forward(layer, buffers);
        }
        let mut rest = buffers.states.as_slice();
        let mut vectors = Vec::with_capacity(texts.len());
        for ids in texts {
            let (values, after) = rest.split_at(ids.len() * self.width);
            let vector = mean_direction(values, self.width);
            let tokens = self.token_head.as_ref().map(|head| head.apply(values, self.width));
            vectors.push(TextEmbedding { vector, tokens });
            rest = after;
        }
        vectors
    }

    fn look_up(&self, texts: &[&[u32]], buffers: &mut EncoderBuffers) {
        let words = &self.bytes[self.words.clone()];
        buffers.states.clear();
        for ids in texts {
            for (id, position) in ids.iter().zip(self.positions.chunks_exact(self.width)) {
                let at = *id as usize;
                let scale = self.word_scales[at];
                let codes = &words[at * self.width..(at + 1) * self.width];
                let row = codes.iter().zip(position);
                buffers.states.extend(row.map(|(code, place)| f32::from(code.cast_signed()) * scale + place));
            }
        }
        self.embedding_norm.apply(self.kernels, &mut buffers.states);
    }

    fn attend(&self, layer: &Layer, texts: &[&[u32]], buffers: &mut EncoderBuffers) {
        let EncoderBuffers { coded, states, query_key_value, attended, attention, .. } = buffers;
        query_key_value.resize(states.len() * 3, 0.0);
        attended.resize(states.len(), 0.0);
        let block = self.kernels.block_rows() * self.width;
        for (x, out) in states.chunks(block).zip(query_key_value.chunks_mut(3 * block)) {
            coded.code(self.kernels, x, self.width);
            layer.query_key_value.apply(coded, Epilogue::Write, out);
        }
        let (mut parts, mut outs) = (query_key_value.as_slice(), attended.as_mut_slice());
        for ids in texts {
            let (part, parts_after) = parts.split_at(ids.len() * 3 * self.width);
            let (out, outs_after) = outs.split_at_mut(ids.len() * self.width);
            attend(self.kernels, self.heads, part, attention, out);
            (parts, outs) = (parts_after, outs_after);
        }
        for (x, out) in attended.chunks(block).zip(states.chunks_mut(block)) {
            coded.code(self.kernels, x, self.width);
            layer.attention_output.apply(coded, Epilogue::Add, out);
            layer.attention_norm.apply(self.kernels, out);
        }
    }

    fn feed_forward(&self, layer: &Layer, buffers: &mut EncoderBuffers) {
        let EncoderBuffers { coded, states, hidden, .. } = buffers;
        let hidden_width = layer.feed_forward_in.outputs();
        for x in states.chunks_mut(self.kernels.block_rows() * self.width) {
            hidden.resize(x.len() / self.width * hidden_width, 0.0);
            coded.code(self.kernels, x, self.width);
            layer.feed_forward_in.apply(coded, Epilogue::Activate, hidden);
            coded.code(self.kernels, hidden, hidden_width);
            layer.feed_forward_out.apply(coded, Epilogue::Add, x);
            layer.feed_forward_norm.apply(self.kernels, x);
        }
    }
}

/// Whether the kernels can multiply rows of this length.
fn fits(width: usize) -> Result<(), ModelFileError> {
    if (1..=Linear::MOST_INPUTS).contains(&width) {
        Ok(())
    } else {
        Err(ModelFileError::Unsupported(format!("a layer {width} wide")))
    }
}

impl TokenProjection {
    fn apply(&self, states: &[f32], width: usize) -> TokenVectors {
        let tokens = (states.len() / width).min(self.head.limit);
        let rows = project(&states[..tokens * width], &self.weights, width);
        let codes = rows.chunks_exact(self.head.width).flat_map(|row| {
            let length = row.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            row.iter().map(move |value| (value / length * 127.0).round() as i8)
        });
        TokenVectors::new(self.head.width, codes.collect()).expect("invariant: the rows are whole")
    }
}

impl Norm {
    fn apply(&self, kernels: Kernels, values: &mut [f32]) {
        normalise(kernels, values, &self.gains, &self.biases, self.epsilon);
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoder, EncoderBuffers};
    use crate::model_file::ModelFile;
    use canonry_kernels::{Kernels, Linear};
    use serde_json::{Value, json};
    use std::collections::HashMap;

    const WIDTH: usize = 24;
    const HEADS: usize = 3;
    const HIDDEN: usize = 40;
    const WORDS: usize = 50;
    const TOKEN_WIDTH: usize = 7;

    /// A small model of unusual sizes with invented weights, and the same weights as plain numbers.
    #[derive(Default)]
    struct Tiny {
        entries: serde_json::Map<String, Value>,
        data: Vec<u8>,
        plain: HashMap<String, Vec<f32>>,
        state: u32,
    }

    impl Tiny {
        fn number(&mut self) -> f32 {
            self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.state >> 8) as f32 / (1 << 24) as f32 - 0.5
        }

        fn put(&mut self, name: &str, kind: &str, shape: &[usize], bytes: &[u8]) {
            let start = self.data.len();
            self.data.extend(bytes);
            let entry = json!({"dtype": kind, "shape": shape, "data_offsets": [start, self.data.len()]});
            self.entries.insert(name.to_owned(), entry);
        }

        fn floats(&mut self, name: &str, shape: &[usize], around: f32, spread: f32) -> Vec<f32> {
            let values: Vec<f32> = (0..shape.iter().product()).map(|_| around + spread * self.number()).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.put(name, "F32", shape, &bytes);
            self.plain.insert(name.to_owned(), values.clone());
            values
        }

        fn codes(&mut self, name: &str, rows: usize, columns: usize) {
            let codes: Vec<i8> = (0..rows * columns).map(|_| (self.number() * 254.0) as i8).collect();
            let bytes: Vec<u8> = codes.iter().map(|code| code.cast_unsigned()).collect();
            self.put(&format!("{name}.weight"), "I8", &[rows, columns], &bytes);
            let scales = self.floats(&format!("{name}.scale"), &[rows], 0.003, 0.002);
            let plain = codes.iter().enumerate().map(|(at, code)| f32::from(*code) * scales[at / columns]).collect();
            self.plain.insert(format!("{name}.weight"), plain);
        }

        fn linear(&mut self, name: &str, inputs: usize, outputs: usize) {
            self.codes(name, outputs, inputs);
            self.floats(&format!("{name}.bias"), &[outputs], 0.0, 0.2);
        }

        fn norm(&mut self, name: &str) {
            self.floats(&format!("{name}.gain"), &[WIDTH], 1.0, 0.4);
            self.floats(&format!("{name}.bias"), &[WIDTH], 0.0, 0.4);
        }

        fn make() -> Self {
            let mut tiny = Self::default();
            tiny.codes("words", WORDS, WIDTH);
            tiny.floats("positions", &[16, WIDTH], 0.0, 0.4);
            tiny.norm("embedding_norm");
            for layer in 0..2 {
                tiny.linear(&format!("layers.{layer}.query_key_value"), WIDTH, 3 * WIDTH);
                tiny.linear(&format!("layers.{layer}.attention_output"), WIDTH, WIDTH);
                tiny.linear(&format!("layers.{layer}.feed_forward_in"), WIDTH, HIDDEN);
                tiny.linear(&format!("layers.{layer}.feed_forward_out"), HIDDEN, WIDTH);
                tiny.norm(&format!("layers.{layer}.attention_norm"));
                tiny.norm(&format!("layers.{layer}.feed_forward_norm"));
            }
            tiny.floats("tokens.weight", &[TOKEN_WIDTH, WIDTH], 0.0, 1.0);
            tiny
        }

        fn file(&self) -> ModelFile {
            let header = json!({"format": 2, "model_id": "local:tiny", "architecture": "bert", "dimension": WIDTH,
                "layers": 2, "heads": HEADS, "norm_epsilon": 1e-12, "token_limit": 16, "pooling": "mean",
                "lower_case": true, "calibration": {"anchors": []},
                "token_vectors": {"width": TOKEN_WIDTH, "limit": 5}});
            let mut entries = self.entries.clone();
            entries.insert("__metadata__".to_owned(), json!({"canonry": header.to_string()}));
            let entries = Value::Object(entries).to_string();
            let mut bytes = (entries.len() as u64).to_le_bytes().to_vec();
            bytes.extend(entries.as_bytes());
            bytes.extend(&self.data);
            ModelFile::parse(bytes.into()).expect("well formed")
        }

        fn product(&self, name: &str, x: &[f32]) -> Vec<f32> {
            let weights = self.plain[&format!("{name}.weight")].chunks(x.len());
            let dot = |row: &[f32]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
            weights.zip(&self.plain[&format!("{name}.bias")]).map(|(row, bias)| dot(row) + bias).collect()
        }

        fn normalised(&self, name: &str, x: &[f32]) -> Vec<f32> {
            let mean = x.iter().sum::<f32>() / x.len() as f32;
            let deviation = (x.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / x.len() as f32).sqrt();
            let learned = self.plain[&format!("{name}.gain")].iter().zip(&self.plain[&format!("{name}.bias")]);
            x.iter().zip(learned).map(|(v, (gain, bias))| (v - mean) / deviation * gain + bias).collect()
        }

        /// The last states of the textbook network, computed one number at a time.
        fn states(&self, ids: &[u32]) -> Vec<Vec<f32>> {
            let add = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f32>>();
            let word = |id: &u32| &self.plain["words.weight"][*id as usize * WIDTH..][..WIDTH];
            let places = self.plain["positions"].chunks(WIDTH);
            let mut rows: Vec<Vec<f32>> = ids
                .iter()
                .zip(places)
                .map(|(id, place)| self.normalised("embedding_norm", &add(word(id), place)))
                .collect();
            for layer in 0..2 {
                let at = |part: &str| format!("layers.{layer}.{part}");
                let parts: Vec<Vec<f32>> = rows.iter().map(|row| self.product(&at("query_key_value"), row)).collect();
                let size = WIDTH / HEADS;
                for (row, own) in rows.iter_mut().zip(&parts) {
                    let mut attended = Vec::new();
                    for head in (0..WIDTH).step_by(size) {
                        let part = |of: &[f32], which: usize| of[which * WIDTH + head..][..size].to_vec();
                        let query = part(own, 0);
                        let score = |other: &Vec<f32>| {
                            let dot: f32 = query.iter().zip(part(other, 1)).map(|(a, b)| a * b).sum();
                            (dot / (size as f32).sqrt()).exp()
                        };
                        let scores: Vec<f32> = parts.iter().map(score).collect();
                        let total: f32 = scores.iter().sum();
                        for place in 0..size {
                            let values = parts.iter().map(|other| part(other, 2)[place]);
                            attended.push(scores.iter().zip(values).map(|(score, value)| score / total * value).sum());
                        }
                    }
                    *row = self.normalised(
                        &at("attention_norm"),
                        &add(row, &self.product(&at("attention_output"), &attended)),
                    );
                }
                for row in &mut rows {
                    let tanh_gelu = |x: &f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x.powi(3))).tanh());
                    let hidden: Vec<f32> = self.product(&at("feed_forward_in"), row).iter().map(tanh_gelu).collect();
                    *row = self.normalised(
                        &at("feed_forward_norm"),
                        &add(row, &self.product(&at("feed_forward_out"), &hidden)),
                    );
                }
            }
            rows
        }
    }

    #[test]
    fn is_the_network_of_the_textbook_whatever_its_sizes() {
        let tiny = Tiny::make();
        for kernels in Kernels::available() {
            is_the_network_of_the_textbook(&tiny, kernels);
        }
    }

    fn is_the_network_of_the_textbook(tiny: &Tiny, kernels: Kernels) {
        let encoder = Encoder::read(tiny.file(), kernels).expect("all tensors are there");
        assert_eq!(encoder.vocabulary(), WORDS);
        let texts: [&[u32]; 3] =
            [&[1, 2, 3, 4, 5, 6, 7], &[49, 0], &[9, 9, 9, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42]];
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        for (embedding, ids) in encoder.encode(&texts, &mut EncoderBuffers::default()).iter().zip(texts) {
            let (vector, states) = (&embedding.vector, tiny.states(ids));
            let plain: Vec<f32> = (0..WIDTH).map(|at| states.iter().map(|row| row[at]).sum()).collect();
            let cosine = dot(vector, &plain) / dot(&plain, &plain).sqrt();
            assert!(cosine > 0.998, "{ids:?}: {cosine}");
            assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
            let tokens = embedding.tokens.as_ref().expect("the model has a head for them");
            assert_eq!(tokens.len(), ids.len().min(5));
            for (row, state) in tokens.rows().zip(&states) {
                let row: Vec<f32> = row.iter().map(|code| f32::from(*code)).collect();
                let plain: Vec<f32> =
                    tiny.plain["tokens.weight"].chunks(WIDTH).map(|weights| dot(weights, state)).collect();
                let cosine = dot(&row, &plain) / (dot(&plain, &plain) * dot(&row, &row)).sqrt();
                assert!(cosine > 0.99, "{ids:?}: {cosine}");
                assert!((dot(&row, &row).sqrt() - 127.0).abs() < 2.0);
            }
        }
    }

    #[test]
    fn a_model_that_lacks_a_tensor_is_refused() {
        let mut tiny = Tiny::make();
        tiny.entries.remove("layers.1.attention_norm.gain");
        let error = Encoder::read(tiny.file(), Kernels::best()).err().expect("refused").to_string();
        assert_eq!(error, "read tensor layers.1.attention_norm.gain of the model file: it is absent");
    }

    #[test]
    fn a_model_with_a_layer_of_no_width_or_too_much_is_refused() {
        for hidden in [0, Linear::MOST_INPUTS + 1, usize::MAX] {
            let mut tiny = Tiny::make();
            tiny.put("layers.1.feed_forward_in.weight", "I8", &[hidden, WIDTH], &[]);
            let error = Encoder::read(tiny.file(), Kernels::best()).err().expect("refused").to_string();
            assert_eq!(error, format!("read the model file: a layer {hidden} wide is not supported"));
        }
    }
}
