//! `strftime_now`: the date and time in a template, in UTC.

use std::fmt::Write as _;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
];

/// Formats seconds since 1970-01-01T00:00:00Z by C's directives; a `-` after `%` leaves out padding.
pub(super) fn format(seconds: i64, format: &str) -> Result<String, String> {
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let (year, month, day) = civil(days);
    let weekday = DAYS[(days + 4).rem_euclid(7) as usize];
    let month_name = MONTHS[(month - 1) as usize];
    let hour12 = (hour + 11) % 12 + 1;

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        let padded = directive != Some('-');
        if !padded {
            directive = chars.next();
        }
        let mut number = |value: i64, width: usize| {
            let width = if padded { width } else { 0 };
            write!(out, "{value:0width$}").expect("a String takes all writes");
        };
        match directive {
            Some('Y') => number(year, 4),
            Some('y') => number(year.rem_euclid(100), 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('H') => number(hour, 2),
            Some('I') => number(hour12, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('j') => number(days - days_since_epoch(year, 1, 1) + 1, 3),
            Some('e') => write!(out, "{day:2}").expect("a String takes all writes"),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(&weekday[..3]),
            Some('B') => out.push_str(month_name),
            Some('b' | 'h') => out.push_str(&month_name[..3]),
            Some('F') => write!(out, "{year:04}-{month:02}-{day:02}").expect("a String takes all writes"),
            Some('T') => write!(out, "{hour:02}:{minute:02}:{second:02}").expect("a String takes all writes"),
            Some('Z') => out.push_str("UTC"),
            Some('z') => out.push_str("+0000"),
            Some('%') => out.push('%'),
            Some(other) => return Err(format!("strftime_now: the directive %{other} is not known")),
            None => return Err("strftime_now: the format ends in the middle of a directive".into()),
        }
    }
    Ok(out)
}

/// Year, month (1–12) and day (1–31) of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_since_epoch(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (2..=12).take_while(|&month| days_since_epoch(year, month, 1) <= days).last().unwrap_or(1);
    (year, month, days - days_since_epoch(year, month, 1) + 1)
}

/// Days from 1970-01-01 to a date, which may be before it.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |before: i64| (before - 1).div_euclid(4) - (before - 1).div_euclid(100) + (before - 1).div_euclid(400);
    let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let extra = i64::from(leap && month > 2);
    365 * (year - 1970) + leaps(year) - leaps(1970) + BEFORE[(month - 1) as usize] + extra + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(format(0, "%Y-%m-%d %H:%M:%S %A %j").unwrap(), "1970-01-01 00:00:00 Thursday 001");
        assert_eq!(format(1_709_210_096, "%d %b %Y, %-I:%M %p").unwrap(), "29 Feb 2024, 12:34 PM");
        assert_eq!(format(1_735_689_599, "%F %T %a %-d %B %y%%").unwrap(), "2024-12-31 23:59:59 Tue 31 December 24%");
        assert_eq!(format(4_107_542_400, "%F").unwrap(), "2100-03-01");
    }

    #[test]
    fn calendar_runs_without_gaps() {
        let mut last = civil(-1);
        assert_eq!(last, (1969, 12, 31));
        for day in 0..80_000 {
            let date = civil(day);
            assert!(date > last && (date.2 == last.2 + 1 || date.2 == 1), "{last:?} then {date:?}");
            assert_eq!(days_since_epoch(date.0, date.1, date.2), day);
            last = date;
        }
    }

    #[test]
    fn unknown_directives_are_refused() {
        assert!(format(0, "%Q").is_err());
        assert!(format(0, "100%").is_err());
    }
}
