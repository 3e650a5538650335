//! Calls of any number of tokens, where the functions of a package show what a width in between is.

use std::collections::BTreeMap;

use anemone_cpu::{Plan, PlanOptions, Pool, Widths, worthwhile_width};
use anemone_mil::Function;
use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;

use super::call::PlannedCall;
use crate::signature::{Call, Gives, Step};

/// What the functions of a package, the one of a single token and the widest, show together.
pub(super) struct Families<'a> {
    pair: Option<Pair<'a>>,
    owner: [u8; 32],
    exact: bool,
    pool: &'a Pool,
}

struct Pair<'a> {
    narrow: &'a Call,
    wide: &'a Call,
    functions: &'a BTreeMap<String, Function>,
    cache: &'a PackCache,
}

impl<'a> Families<'a> {
    /// Of a model in one part, with functions of fixed widths that keep their cache in states.
    pub(super) fn of(
        models: &'a [Model],
        caches: &'a [PackCache],
        steps: &'a [Step],
        (owner, exact): ([u8; 32], bool),
        pool: &'a Pool,
    ) -> Self {
        let pair = match (models, caches, steps) {
            ([model], [cache], [narrow, .., wide]) => match (&narrow.calls[..], &wide.calls[..]) {
                ([narrow], [wide]) => Some(Pair { narrow, wide, functions: &model.program.functions, cache }),
                _ => None,
            },
            _ => None,
        };
        let fixed = |call: &Call| call.varying.is_none() && call.caches.is_empty() && call.gives == Gives::Logits;
        let fits = |pair: &Pair<'_>| {
            pair.narrow.width == 1
                && pair.narrow.function != pair.wide.function
                && fixed(pair.narrow)
                && fixed(pair.wide)
        };
        Self { pair: pair.filter(fits), owner, exact, pool }
    }

    /// None of them, if calls are to be as they are written.
    pub(super) fn unless(self, as_written: bool) -> Self {
        Self { pair: self.pair.filter(|_| !as_written), ..self }
    }

    /// The widest call, for any number of tokens: for more than it has, if that is faster.
    pub(super) fn wide(&self, call: &Call) -> Option<PlannedCall> {
        let pair = self.pair.as_ref().filter(|pair| pair.wide.width == call.width)?;
        let [one, many] = pair.both();
        let most = worthwhile_width().filter(|_| !self.exact).map(|most| most.min(call.context));
        [most, Some(call.width)].into_iter().flatten().find_map(|most| {
            let widths = Widths::of_wide(one, many, most)?;
            let call = Call { width: widths.range().1, ..call.clone() };
            self.plan(Some(widths), call, pair.cache)
        })
    }

    /// A call of at most so many tokens with the logits of each.
    pub(super) fn checking(&self, tokens: usize) -> Option<PlannedCall> {
        let pair = self.pair.as_ref()?;
        let [one, many] = pair.both();
        let widths = Widths::of_narrow(one, many)?.up_to(tokens);
        let call = Call { width: widths.range().1, ..pair.narrow.clone() };
        self.plan(Some(widths), call, pair.cache).filter(PlannedCall::gives_each)
    }

    fn plan(&self, widths: Option<Widths>, call: Call, cache: &PackCache) -> Option<PlannedCall> {
        let name = call.function.clone();
        let Some(widths) = widths else {
            tracing::debug!("function `{name}` differs in more than its width: its calls are always whole");
            return None;
        };
        let options = PlanOptions { owner: self.owner, exact: self.exact, ..PlanOptions::default() };
        let planned = Plan::of_widths(&widths, &options, cache).map_err(|error| error.to_string());
        let planned = planned.and_then(|plan| PlannedCall::of_widths(call, plan, widths.range().0, self.pool.clone()));
        planned.inspect_err(|error| tracing::debug!("function `{name}`, for any number of tokens: {error}")).ok()
    }
}

impl<'a> Pair<'a> {
    fn both(&self) -> [(&'a Function, usize); 2] {
        [self.narrow, self.wide].map(|call| (&self.functions[&call.function], call.width))
    }
}
