//! The state of one conversation.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use half::f16;

use crate::{CoreMlError, Framework, Port, Result};

/// What a package keeps between predictions, zeroed by us: a fresh state of Core ML's own has been seen to hold rubbish.
///
/// It may move between threads, and is used by one at a time:
///
/// ```compile_fail
/// fn shared<T: Sync>(_: T) {}
/// fn two_at_once<F: anemone_coreml::Framework>(state: anemone_coreml::State<F>) { shared(state) }
/// ```
///
/// while
///
/// ```
/// fn moved<T: Send>(_: T) {}
/// fn to_another_thread<F: anemone_coreml::Framework>(state: anemone_coreml::State<F>) { moved(state) }
/// ```
#[derive(Debug)]
pub struct State<F: Framework> {
    pub(crate) inner: F::State,
    framework: Arc<F>,
    owner: [u8; 32],
    ports: Arc<[Port]>,
    spoiled: bool,
    exclusive: PhantomData<Cell<()>>,
}

impl<F: Framework> State<F> {
    /// Takes a state that Core ML made, and writes zeros over it.
    pub(crate) fn zeroed(framework: Arc<F>, inner: F::State, owner: [u8; 32], ports: Arc<[Port]>) -> Result<Self> {
        let mut state = Self { inner, framework, owner, ports, spoiled: false, exclusive: PhantomData };
        for port in Arc::clone(&state.ports).iter() {
            let framework = Arc::clone(&state.framework);
            framework.write_state(&mut state.inner, &port.name, &mut |mut view| {
                view.zero();
                Ok(())
            })?;
        }
        Ok(state)
    }

    /// The arrays, in order of names.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Digest of the package that it belongs to.
    #[must_use]
    pub fn owner(&self) -> &[u8; 32] {
        &self.owner
    }

    /// Reads columns of rows of the array `name` (…, positions, row) into `to`, packed: (rows, columns, row). Rows are counted
    /// over the axes before positions.
    ///
    /// # Errors
    /// If there is no such array, or it has other rows or columns; [`CoreMlError::Spoiled`].
    pub fn read_columns(&self, name: &str, rows: Range<usize>, columns: Range<usize>, to: &mut [f16]) -> Result<()> {
        self.usable()?;
        self.port(name)?;
        self.framework.read_state(&self.inner, name, &mut |view| view.read_columns(rows.clone(), columns.clone(), to))
    }

    /// Writes columns of rows of the array `name` (…, positions, row) from packed ones; the others stay as they are.
    ///
    /// # Errors
    /// If there is no such array, or it has other rows or columns; [`CoreMlError::Spoiled`].
    pub fn write_columns(&mut self, name: &str, rows: Range<usize>, columns: Range<usize>, from: &[f16]) -> Result<()> {
        self.usable()?;
        self.port(name)?;
        let framework = Arc::clone(&self.framework);
        framework
            .write_state(&mut self.inner, name, &mut |mut view| view.write_columns(rows.clone(), columns.clone(), from))
    }

    /// Copies the first `position` columns of every array of `other`.
    ///
    /// # Errors
    /// If the other belongs to another package, and as [`write_columns`](Self::write_columns).
    pub fn copy_columns(&mut self, other: &State<F>, position: usize) -> Result<()> {
        other.check(&self.owner)?;
        for port in Arc::clone(&self.ports).iter() {
            let [outer @ .., positions, row] = &port.shape[..] else { continue };
            let (rows, columns) = (0..outer.iter().product(), 0..position.min(*positions));
            // The elements were counted when the port was checked, and these are no more.
            let mut packed = vec![f16::ZERO; rows.len() * columns.len() * row];
            other.read_columns(&port.name, rows.clone(), columns.clone(), &mut packed)?;
            self.write_columns(&port.name, rows, columns, &packed)?;
        }
        Ok(())
    }

    /// Refuses a state of another package, and one that nothing is known of.
    pub(crate) fn check(&self, owner: &[u8; 32]) -> Result<()> {
        if self.owner != *owner {
            return Err(CoreMlError::Foreign { expected: short(owner), found: short(&self.owner) });
        }
        self.usable()
    }

    pub(crate) fn spoil(&mut self) {
        self.spoiled = true;
    }

    fn usable(&self) -> Result<()> {
        if self.spoiled { Err(CoreMlError::Spoiled) } else { Ok(()) }
    }

    fn port(&self, name: &str) -> Result<&Port> {
        self.ports.iter().find(|port| port.name == name).ok_or_else(|| CoreMlError::Port {
            function: "any".to_owned(),
            what: "state",
            port: name.to_owned(),
            expected: format!("one of {:?}", self.ports.iter().map(|p| &p.name).collect::<Vec<_>>()),
            found: "none of that name".to_owned(),
        })
    }
}

fn short(digest: &[u8]) -> String {
    digest.iter().take(6).map(|b| format!("{b:02x}")).collect()
}
