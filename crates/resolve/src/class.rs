//! Classes that are not ours: what is told about an object of one, where nobody else serves it.

use kinds::suggest;
use model::{Code, FieldPath, ObjectRef, Verdict};

/// A class that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherClass<'o> {
    /// The field that names it, or would.
    pub field: FieldPath,
    /// The class, if the object names one that can be read.
    pub named: Option<&'o str>,
    /// The classes that are served.
    pub ours: Vec<&'o str>,
}

impl OtherClass<'_> {
    /// What is told about an object of the class.
    pub fn on(self, object: &ObjectRef) -> Verdict {
        let ours = match self.ours.split_last() {
            None => "none".to_owned(),
            Some((last, [])) => format!("`{last}`"),
            Some((last, others)) => format!("`{}` and `{last}`", others.join("`, `")),
        };
        let why = match self.named {
            None => format!(
                "it is not served: it names no class that can be read, and the classes that are served are {ours}"
            ),
            Some(class) => match suggest::nearest(class, self.ours.iter().copied()) {
                Some(meant) => format!("it is not served: class `{class}` is not one of ours; did you mean `{meant}`?"),
                None => format!("it is not served: class `{class}` is not one of ours, which are {ours}"),
            },
        };
        Verdict::new(Code::OtherClass, object.at(self.field), why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_was_probably_meant_is_named() {
        let reported = |named: Option<&str>, ours: &[&str]| {
            let class = OtherClass { field: "spec.ingressClassName".into(), named, ours: ours.to_vec() };
            class.on(&ObjectRef::new(kinds::kind::SERVICE, "a", "b")).message.to_string()
        };
        let of_ours = "it is not served: class `contuor` is not one of ours; did you mean `contour`?";
        assert_eq!(reported(Some("contuor"), &["sesame", "contour"]), of_ours);
        let foreign = "it is not served: class `nginx` is not one of ours, which are `a`, `b` and `c`";
        assert_eq!(reported(Some("nginx"), &["a", "b", "c"]), foreign);
        assert!(reported(None, &["sesame"]).ends_with("the classes that are served are `sesame`"));
    }
}
