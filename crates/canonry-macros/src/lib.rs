#![doc = include_str!("../README.md")]

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::visit_mut::{VisitMut, visit_type_reference_mut};
use syn::{
    Block, FnArg, GenericParam, ImplItem, Item, Lifetime, LifetimeParam, ReturnType, Signature, TypeReference,
    Visibility, parse_quote,
};

/// Makes the public async functions of an item return boxed futures.
#[proc_macro_attribute]
pub fn boxed(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let mut item = syn::parse_macro_input!(item as Item);
    match &mut item {
        Item::Fn(function) if is_boxable(&function.vis, &function.sig) => {
            box_future(&mut function.sig, &mut function.block);
        }
        Item::Impl(block) => {
            for method in &mut block.items {
                if let ImplItem::Fn(method) = method
                    && is_boxable(&method.vis, &method.sig)
                {
                    box_future(&mut method.sig, &mut method.block);
                }
            }
        }
        other => {
            let error = syn::Error::new_spanned(other, "`#[boxed]` goes on a `pub async fn` or an `impl` block");
            return error.to_compile_error().into();
        }
    }
    item.into_token_stream().into()
}

fn is_boxable(visibility: &Visibility, signature: &Signature) -> bool {
    let is_generic = signature.generics.type_params().next().is_some();
    let takes_impl = signature.inputs.iter().any(|input| tokens(input).contains("impl "));
    matches!(visibility, Visibility::Public(_)) && signature.asyncness.is_some() && !is_generic && !takes_impl
}

fn tokens(input: &FnArg) -> String {
    input.to_token_stream().to_string()
}

fn box_future(signature: &mut Signature, block: &mut Block) {
    signature.asyncness = None;
    let mut lifetimes = NamedLifetimes { added: Vec::new() };
    for input in &mut signature.inputs {
        lifetimes.visit_fn_arg_mut(input);
    }
    for lifetime in lifetimes.added {
        signature.generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(lifetime)));
    }
    let all: Vec<Lifetime> = signature.generics.lifetimes().map(|parameter| parameter.lifetime.clone()).collect();
    let boxed: Lifetime = parse_quote!('boxed);
    signature.generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(boxed.clone())));
    let bounds = signature.generics.make_where_clause();
    for lifetime in all {
        bounds.predicates.push(parse_quote!(#lifetime: #boxed));
    }
    if matches!(signature.inputs.first(), Some(FnArg::Receiver(_))) {
        bounds.predicates.push(parse_quote!(Self: #boxed));
    }
    let output: TokenStream = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, output) => quote!(#output),
    };
    signature.output = parse_quote!(
        -> ::std::pin::Pin<::std::boxed::Box<dyn ::std::future::Future<Output = #output> + ::std::marker::Send + #boxed>>
    );
    let statements = &block.stmts;
    // The unreachable return tells the compiler the type that the block's `?` and `into` aim at.
    *block = parse_quote!({
        ::std::boxed::Box::pin(async move {
            if let ::std::option::Option::Some(output) = ::std::option::Option::None::<#output> {
                return output;
            }
            #(#statements)*
        })
    });
}

/// Gives a name to each lifetime that was left out, so that the future can be bound by all of them.
struct NamedLifetimes {
    added: Vec<Lifetime>,
}

impl NamedLifetimes {
    fn next(&mut self) -> Lifetime {
        let lifetime = Lifetime::new(&format!("'input{}", self.added.len()), Span::call_site());
        self.added.push(lifetime.clone());
        lifetime
    }
}

impl VisitMut for NamedLifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.next());
        }
        visit_type_reference_mut(self, reference);
    }

    fn visit_receiver_mut(&mut self, receiver: &mut syn::Receiver) {
        if let Some((_, lifetime)) = &mut receiver.reference {
            if lifetime.is_none() {
                *lifetime = Some(self.next());
            }
        } else {
            syn::visit_mut::visit_type_mut(self, &mut receiver.ty);
        }
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.next();
        }
    }
}
