//! From which namespaces routes may attach to a listener, and ListenerSets to a Gateway.

use crate::GatewayView;
use kinds::{
    Gateway, TextMap,
    gateway::listener::{FromNamespaces, ListenerNamespaces},
    label_selector::{LabelOperator, LabelSelector},
};
use std::sync::Arc;

/// The label with its name that every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// Some namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// None.
    None,
    /// All.
    All,
    /// This one.
    Same(Arc<str>),
    /// Those whose labels meet all requirements.
    Selected(Arc<[Requirement]>),
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Its value is one of these.
    In(Box<str>, Box<[Box<str>]>),
    /// It is absent, or its value is none of these.
    NotIn(Box<str>, Box<[Box<str>]>),
    /// It is there.
    Exists(Box<str>),
    /// It is not there.
    DoesNotExist(Box<str>),
}

impl Requirement {
    /// Whether it holds for a label, which is absent, has a value, or cannot be read: then nothing holds.
    fn holds(&self, label: impl Fn(&str) -> Result<Option<Box<str>>, Unreadable>) -> bool {
        let (Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::DoesNotExist(key)) = self;
        let Ok(label) = label(key) else { return false };
        match self {
            Self::In(_, values) => label.is_some_and(|value| values.contains(&value)),
            Self::NotIn(_, values) => label.is_none_or(|value| !values.contains(&value)),
            Self::Exists(_) => label.is_some(),
            Self::DoesNotExist(_) => label.is_none(),
        }
    }
}

/// The label of a namespace is not known: the namespace is not there, may not be read, or its labels are no texts.
struct Unreadable;

impl Namespaces {
    /// Whether a namespace is among them.
    pub fn allow(&self, namespace: &str, view: &mut impl GatewayView) -> bool {
        match self {
            Namespaces::None => false,
            Namespaces::All => true,
            Namespaces::Same(own) => **own == *namespace,
            Namespaces::Selected(requirements) => {
                let object = view.namespace(namespace);
                let labels = object.as_ref().map(|namespace| &namespace.meta.labels);
                let labels = labels.filter(|labels: &&TextMap| labels.broken().is_none());
                let own = |key: &str| {
                    let value = labels.ok_or(Unreadable)?.get(key).map_err(|_| Unreadable)?;
                    Ok(value.cloned())
                };
                let label = |key: &str| if key == NAME { Ok(Some(namespace.into())) } else { own(key) };
                requirements.iter().all(|requirement| requirement.holds(label))
            }
        }
    }
}

/// Reads whose routes may attach to a listener of an object in `own`.
pub(super) fn of_routes(namespaces: Option<&ListenerNamespaces>, own: &Arc<str>) -> Result<Namespaces, String> {
    let from = namespaces.and_then(|namespaces| namespaces.from.as_ref()).unwrap_or(&FromNamespaces::Same);
    read(from, namespaces, own)
}

/// Which ListenerSets may attach to a Gateway. What cannot be read lets nobody in.
pub(super) fn of_sets(gateway: &Gateway) -> Namespaces {
    let allowed = gateway.spec.allowed_listeners.ok().and_then(Option::as_ref);
    let namespaces = allowed.and_then(|allowed| allowed.namespaces.as_ref());
    let from = namespaces.and_then(|namespaces| namespaces.from.as_ref()).unwrap_or(&FromNamespaces::None);
    read(from, namespaces, &gateway.meta.namespace).unwrap_or(Namespaces::None)
}

fn read(from: &FromNamespaces, namespaces: Option<&ListenerNamespaces>, own: &Arc<str>) -> Result<Namespaces, String> {
    Ok(match from {
        FromNamespaces::None => Namespaces::None,
        FromNamespaces::All => Namespaces::All,
        FromNamespaces::Same => Namespaces::Same(own.clone()),
        FromNamespaces::Selector => match namespaces.and_then(|namespaces| namespaces.selector.as_deref()) {
            Some(selector) => Namespaces::Selected(requirements(selector)?.into()),
            None => return Err("from is Selector, but there is no selector".to_owned()),
        },
        FromNamespaces::Unknown(word) => {
            return Err(format!("from is {word}; it is one of All, Selector, Same and None"));
        }
    })
}

fn requirements(selector: &LabelSelector) -> Result<Vec<Requirement>, String> {
    let mut all = Vec::new();
    for (key, value) in selector.match_labels.iter() {
        let value = value.map_err(|fault| fault.to_string())?;
        all.push(Requirement::In(key.into(), Box::new([value.clone()])));
    }
    if let Some(fault) = selector.match_labels.broken().or_else(|| selector.match_expressions.faults().next()) {
        return Err(fault.to_string());
    }
    for (_, expression) in selector.match_expressions.good() {
        let (key, values) = (expression.key.clone(), expression.values.clone());
        all.push(match &expression.operator {
            Some(LabelOperator::In) if !values.is_empty() => Requirement::In(key, values),
            Some(LabelOperator::NotIn) if !values.is_empty() => Requirement::NotIn(key, values),
            Some(LabelOperator::Exists) if values.is_empty() => Requirement::Exists(key),
            Some(LabelOperator::DoesNotExist) if values.is_empty() => Requirement::DoesNotExist(key),
            Some(LabelOperator::Unknown(word)) => return Err(format!("unknown operator {word} for label {key}")),
            None => return Err(format!("no operator for label {key}")),
            Some(operator) => {
                return Err(format!("operator {operator} for label {key} has the wrong number of values"));
            }
        });
    }
    Ok(all)
}
