//! Lists of values in SQL, bound one by one as both engines take them.

use sqlx::{Database, Encode, QueryBuilder, Type};

pub(crate) trait PushList<DB: Database> {
    /// Pushes the values of an `IN (` and the parenthesis that ends it.
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
