//! The map and the set of this crate, which are sorted vectors, and how it sorts.
//!
//! They take the place of the standard library's trees, whose code is some 5 KB of WebAssembly for every pair of types
//! they are used with. A look-up is a binary search; an insertion or a removal moves the entries behind it, which for
//! the tens of entries that maps here hold (open operations, tools, timers), and for some thousands still, takes
//! microseconds. What grows with a conversation's length is a `HashSet` or a `HashMap` instead, and says so.

use std::borrow::Borrow;
use std::mem;

/// A map whose entries are in the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrderedMap<K, V>(Vec<(K, V)>);

impl<K: Ord, V> OrderedMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The map of any number of entries. Of entries with equal keys the last counts.
    pub(crate) fn of_many(mut entries: Vec<(K, V)>) -> Self {
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|later, earlier| {
            later.0 == earlier.0 && {
                mem::swap(later, earlier);
                true
            }
        });
        Self(entries)
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let position = self.position(key).ok()?;
        self.0.get(position).map(|(_, value)| value)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let position = self.position(key).ok()?;
        self.0.get_mut(position).map(|(_, value)| value)
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.position(key).is_ok()
    }

    /// Sets a key's value; the value it had is handed back.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let earlier = self.remove(&key);
        let position = self.position(&key).unwrap_or_else(|position| position);
        self.0.insert(position, (key, value));
        earlier
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let position = self.position(key).ok()?;
        Some(self.0.remove(position).1)
    }

    /// Keeps the entries for which this is true, visiting them in order.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| is_kept(key, value));
    }

    /// Takes the values for which this is true out, in order, as they are read.
    pub(crate) fn extract_if(&mut self, mut is_taken: impl FnMut(&V) -> bool) -> impl Iterator<Item = V> {
        self.0.extract_if(.., move |(_, value)| is_taken(value)).map(|(_, value)| value)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// Where a key is, or where it belongs.
    fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(other, _)| other.borrow().cmp(key))
    }
}

impl<K: Ord, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Of entries with equal keys the last counts.
impl<K: Ord, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// A set whose elements are in order.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSet<T>(OrderedMap<T, ()>);

impl<T: Ord> OrderedSet<T> {
    pub(crate) const fn new() -> Self {
        Self(OrderedMap::new())
    }

    /// Adds an element; false when it was there.
    pub(crate) fn insert(&mut self, element: T) -> bool {
        self.0.insert(element, ()).is_none()
    }

    pub(crate) fn contains<Q: Ord + ?Sized>(&self, element: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(element)
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: Ord> Default for OrderedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord> FromIterator<T> for OrderedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self(elements.into_iter().map(|element| (element, ())).collect())
    }
}

/// The items by their keys, those with equal keys in the order they had. Each is inserted where it belongs, which for a
/// few hundred takes microseconds, and a small part of the code of the standard library's sort.
pub(crate) fn sorted_by_key<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut sorted = Vec::new();
    for item in items {
        let position = sorted.partition_point(|earlier| key(earlier) <= key(&item));
        sorted.insert(position, item);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_the_standard_map_does(steps in prop::collection::vec((0..3_u8, 0..12_u8, any::<u16>()), 0..60)) {
            let (mut map, mut model) = (OrderedMap::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                    1 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => {
                        map.retain(|kept, other| *kept != key || *other > value);
                        model.retain(|kept, other| *kept != key || *other > value);
                    }
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
                prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            }
            prop_assert!(map.into_values().eq(model.into_values()));
        }
    }

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(mut items in prop::collection::vec((0..9_u8, any::<u8>()), 0..30)) {
            let sorted = sorted_by_key(items.clone(), |(key, _)| *key);
            items.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(sorted, items);
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let map: OrderedMap<_, _> = [("b", 1), ("a", 2), ("b", 3)].into_iter().collect();
        assert!(map.iter().eq([(&"a", &2), (&"b", &3)]));
    }

    #[test]
    fn a_set_says_whether_an_element_is_new() {
        let mut set: OrderedSet<String> = ["b".to_owned(), "a".to_owned(), "b".to_owned()].into_iter().collect();
        assert_eq!(set.len(), 2);
        assert!(set.contains("a") && !set.contains("c"));
        assert!(set.insert("c".to_owned()) && !set.insert("c".to_owned()));
    }
}
