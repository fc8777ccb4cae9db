//! Fields of a Mapping that have no effect.

use crate::{Problem, Problems};
use kinds::emissary::mapping::MappingSpec;
use model::Code;

/// Tells them.
pub(super) fn report(spec: &MappingSpec, problems: &mut Problems<'_>) {
    let dead = [("docs", &spec.docs), ("modules", &spec.modules), ("envoy_override", &spec.envoy_override)];
    for (field, value) in dead {
        if problems.optional(field, value).is_some() {
            problems.no_effect(field, "it has no effect in Emissary either");
        }
    }
    if problems.optional("bypass_error_response_overrides", &spec.bypass_error_response_overrides).is_some() {
        problems.no_effect("bypass_error_response_overrides", "responses are not overridden");
    }
    if problems.optional("error_response_overrides", &spec.error_response_overrides).is_some() {
        problems.no_effect("error_response_overrides", "error_response_overrides is not supported, as in Emissary 4");
    }
    if problems.optional("outlier_detection", &spec.outlier_detection).is_some() {
        let why = "outlier_detection is not supported";
        problems.refuse(Problem::new(Code::EmissaryNotServed, "outlier_detection", why));
    }
}
