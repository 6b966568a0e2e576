//! Tests `#[boxed]` with the kinds of signatures in the workspace.

#![expect(unreachable_pub, reason = "only public functions of an `impl` block are boxed")]

use std::pin::Pin;

use canonry_boxed::boxed;

#[derive(Clone, Copy)]
struct Words<'a> {
    text: &'a str,
}

#[derive(Clone, Copy)]
struct Prefix<'a>(&'a str);

#[boxed]
impl Words<'_> {
    pub async fn count(self, prefix: Prefix<'_>, most: Option<&usize>) -> usize {
        tokio::task::yield_now().await;
        let words = self.text.split(' ').filter(|word| word.starts_with(prefix.0)).count();
        most.map_or(words, |most| words.min(*most))
    }

    pub async fn each(&self, then: &mut (dyn FnMut(&str) + Send)) {
        self.text.split(' ').for_each(then);
    }

    /// Generic functions stay as they are.
    pub async fn first<T: From<String>>(self) -> T {
        T::from(self.text.split(' ').next().unwrap_or_default().to_owned())
    }
}

#[boxed]
async fn longest<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.len() > other.len() { one } else { other }
}

/// Fails to compile if a future is not boxed or is not `Send`.
fn is_boxed<'a, T>(future: Pin<Box<dyn Future<Output = T> + Send + 'a>>) -> impl Future<Output = T> + 'a
where
    T: 'a,
{
    future
}

#[tokio::test]
async fn borrowed_arguments_live_as_long_as_the_future() {
    let text = "one two three".to_owned();
    let words = Words { text: &text };
    let most = 1;
    assert_eq!(is_boxed(words.count(Prefix("t"), None)).await, 2);
    assert_eq!(is_boxed(words.count(Prefix("t"), Some(&most))).await, 1);
    let mut read = Vec::new();
    is_boxed(words.each(&mut |word| read.push(word.len()))).await;
    assert_eq!(read, [3, 3, 5]);
    assert_eq!(words.first::<String>().await, "one");
    assert_eq!(is_boxed(longest("one", "three")).await, "three");
}
