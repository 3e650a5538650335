//! The context, drawn.

use anemone::Usage;
use anemone_cli::units::count;
use serde_json::{Value, json};

/// How many cells the bar has.
const WIDTH: usize = 60;

/// How much of the context is taken, as everything that tells of it says it.
pub(super) fn taken(usage: &Usage) -> String {
    let [used, read] = [usage.used(), usage.read].map(|n| count(n as u64));
    format!("{used} are taken, {read} of them in the cache")
}

/// The same for programs.
pub(super) fn object(usage: &Usage) -> Value {
    let Usage { context, system, summary, turns, read, margin, .. } = *usage;
    json!({
        "event": "context",
        "context": context,
        "system": system,
        "summary": summary,
        "turns": turns,
        "read": read,
        "margin": margin,
        "used": usage.used(),
        "free": usage.free(),
    })
}

/// A bar of what takes up the context, with a mark where the margin begins, and what it means.
pub(super) fn drawn(usage: &Usage) -> String {
    let Usage { context, system, summary, turns, margin, .. } = *usage;
    // A part that is there is seen, however small.
    let mut left = WIDTH;
    let mut cells = |tokens: usize| {
        let share = (tokens * WIDTH).div_ceil(context.max(1)).min(left);
        left -= share;
        share
    };
    let mut bar: Vec<char> = Vec::with_capacity(WIDTH);
    for (part, tokens) in [('S', system), ('Σ', summary), ('▒', turns)] {
        bar.extend(std::iter::repeat_n(part, cells(tokens)));
    }
    bar.resize(WIDTH, '·');
    let limit = ((context - margin.min(context)) * WIDTH / context.max(1)).min(WIDTH);
    let mut text = format!("  [{}]\n", bar.into_iter().collect::<String>());
    text += &format!("   {}^ from here on free for the answer\n", " ".repeat(limit.min(WIDTH - 1)));
    let mut row = |sign: char, what: &str, tokens: usize| {
        let share = 100.0 * tokens as f64 / context.max(1) as f64;
        text += &format!("  {sign} {what:<8} {:>9} tokens {share:>5.1} %\n", count(tokens as u64));
    };
    row('S', "system", system);
    row('Σ', "summary", summary);
    row('▒', "turns", turns);
    row('·', "free", usage.free());
    row('^', "margin", margin);
    text + &format!("    context  {:>9} tokens; {}", count(context as u64), taken(usage))
}
