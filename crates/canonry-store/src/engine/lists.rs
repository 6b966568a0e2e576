//! Lists of values in SQL, bound one by one, which both engines accept.

use sqlx::{Database, Encode, QueryBuilder, Type};

pub(crate) trait PushList<DB: Database> {
    /// Pushes the values of an `IN (` and the closing parenthesis.
    fn push_list<'t, T>(&mut self, values: impl IntoIterator<Item = T>) -> &mut Self
    where
        T: Encode<'t, DB> + Type<DB>;
}

impl<DB: Database> PushList<DB> for QueryBuilder<DB> {
    fn push_list<'t, T>(&mut self, values: impl IntoIterator<Item = T>) -> &mut Self
    where
        T: Encode<'t, DB> + Type<DB>,
    {
        let mut listed = self.separated(", ");
        for value in values {
            listed.push_bind(value);
        }
        self.push(")")
    }
}
