//! The two text formats of Prometheus: OpenMetrics, and the classic one for who asks for it.
//!
//! In: the page in OpenMetrics, and what a client accepts. Out: the page in the format that it prefers.

use std::fmt::Write as _;

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4.
    Classic,
}

impl Format {
    /// The one that a client prefers: the classic one if it says so, else OpenMetrics.
    pub fn preferred(accept: Option<&str>) -> Self {
        let (mut open_metrics, mut classic) = (0.0_f32, 0.0_f32);
        for range in accept.into_iter().flat_map(|accept| accept.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let quality = quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            match &*media {
                "application/openmetrics-text" => open_metrics = open_metrics.max(quality),
                "text/plain" | "text/*" => classic = classic.max(quality),
                _ => {}
            }
        }
        if classic > open_metrics { Format::Classic } else { Format::OpenMetrics }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A page of OpenMetrics in this format.
    pub fn of(self, page: String) -> String {
        match self {
            Format::OpenMetrics => page,
            Format::Classic => classic(&page),
        }
    }
}

/// The classic format names a counter by its samples, and knows neither `info` nor units nor an end. Nothing here has exemplars.
fn classic(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = "";
    for line in page.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), text) => help = text.unwrap_or_default(),
            (Some("#"), Some("TYPE"), Some(name), Some(form)) => {
                let (suffix, form) = match form {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                let _infallible = write!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {form}\n");
            }
            (Some("#"), ..) => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_format_is_for_who_prefers_it() {
        for (accept, format) in [
            (None, Format::OpenMetrics),
            (Some("*/*"), Format::OpenMetrics),
            (Some("text/html"), Format::OpenMetrics),
            (Some("text/plain"), Format::Classic),
            (Some("text/plain;version=0.0.4;q=1,*/*;q=0.1"), Format::Classic),
            // As Prometheus asks by default, and with a list of protocols that begins with the classic one.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     text/plain;version=0.0.4;escaping=allow-utf-8;q=0.5,*/*;q=0.2",
                ),
                Format::OpenMetrics,
            ),
            (Some("text/plain;version=0.0.4;q=0.6, application/openmetrics-text;version=1.0.0;q=0.5"), Format::Classic),
            (Some("text/plain;q=0"), Format::OpenMetrics),
            (Some("text/plain;q=nonsense"), Format::OpenMetrics),
        ] {
            assert_eq!(Format::preferred(accept), format, "{accept:?}");
        }
    }

    #[test]
    fn the_classic_format_names_counters_by_their_samples() {
        let page = "# HELP a Things so far.\n# TYPE a counter\n# UNIT a things\na_total{b=\"c # d\"} 1\n\
                    # HELP e What it is.\n# TYPE e info\ne_info{v=\"1\"} 1\n# HELP g Now.\n# TYPE g gauge\ng 2\n# EOF\n";
        let expected = "# HELP a_total Things so far.\n# TYPE a_total counter\na_total{b=\"c # d\"} 1\n\
                        # HELP e_info What it is.\n# TYPE e_info gauge\ne_info{v=\"1\"} 1\n# HELP g Now.\n# TYPE g gauge\ng 2\n";
        assert_eq!(classic(page), expected);
    }
}
