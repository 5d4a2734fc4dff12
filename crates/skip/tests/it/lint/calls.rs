//! The functions that note a skip: those that call one that does.

use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The functions of this crate that note.
const FIRST: [&str; 2] = ["skipped", "installed"];

/// The functions and methods of a crate, and of this one, that may note a skip: `name`, `Type::name`, `.name`.
pub struct Notes(BTreeSet<String>);

impl Notes {
    pub fn of<'a>(files: impl Iterator<Item = &'a syn::File>) -> Notes {
        let mut functions = Functions::default();
        files.for_each(|file| functions.visit_file(file));
        let mut notes = Notes(FIRST.map(str::to_string).into());
        loop {
            let more =
                |(_, calls): &(&String, &BTreeSet<String>)| calls.iter().any(|it| notes.has(it));
            let next: BTreeSet<String> =
                functions.calls.iter().filter(more).map(|(name, _)| name.clone()).collect();
            let before = notes.0.len();
            notes.0.extend(next);
            if notes.0.len() == before {
                return notes;
            }
        }
    }

    pub fn has(&self, call: &str) -> bool {
        // A path that is not `Type::name` is a module's, and the function's own name decides.
        let of_module =
            call.split_once("::").filter(|(first, _)| first.starts_with(char::is_lowercase));
        self.0.contains(of_module.map_or(call, |(_, name)| name))
    }
}

/// The calls of each function.
#[derive(Default)]
struct Functions {
    calls: BTreeMap<String, BTreeSet<String>>,
    /// The type whose methods are being read.
    of: Option<String>,
}

impl Functions {
    fn enter(&mut self, name: String, block: &syn::Block) {
        let own = |call: String| match (call.strip_prefix("Self::"), &self.of) {
            (Some(name), Some(of)) => format!("{of}::{name}"),
            _ => call,
        };
        let calls: BTreeSet<String> = calls_in_block(block).into_iter().map(own).collect();
        self.calls.entry(name).or_default().extend(calls);
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        // Nobody calls these; their names would only collide with others'.
        let is_test = function.attrs.iter().any(|attribute| attribute.path().is_ident("test"));
        if !is_test && function.sig.ident != "main" {
            self.enter(function.sig.ident.to_string(), &function.block);
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let before = self.of.take();
        self.of = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        visit::visit_item_impl(self, item);
        self.of = before;
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        let name = method.sig.ident.to_string();
        let of = self.of.clone().unwrap_or_default();
        self.enter(format!("{of}::{name}"), &method.block);
        self.enter(format!(".{name}"), &method.block);
    }
}

#[derive(Default)]
struct Calls(BTreeSet<String>);

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let names: Vec<String> =
            path.path.segments.iter().map(|part| part.ident.to_string()).collect();
        let from = names.len().saturating_sub(2);
        self.0.insert(names[from..].join("::"));
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0.insert(format!(".{}", call.method));
        visit::visit_expr_method_call(self, call);
    }
}

/// The names called in an expression.
pub fn calls_in(expression: &syn::Expr) -> BTreeSet<String> {
    let mut calls = Calls::default();
    calls.visit_expr(expression);
    calls.0
}

/// The names called in a block.
pub fn calls_in_block(block: &syn::Block) -> BTreeSet<String> {
    let mut calls = Calls::default();
    calls.visit_block(block);
    calls.0
}
