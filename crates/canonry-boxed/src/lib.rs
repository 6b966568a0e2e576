#![doc = include_str!("../README.md")]

use proc_macro::TokenStream;
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{
    FnArg, ImplItem, ItemFn, ItemImpl, Lifetime, ParenthesizedGenericArguments, ReturnType, Signature, TypeBareFn,
    TypeImplTrait, TypeReference, Visibility, parse_quote,
};

/// Boxes the future of an async function, or of every public async function of an `impl` block.
#[proc_macro_attribute]
pub fn boxed(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        return quote!(compile_error!("`#[boxed]` takes no arguments");).into();
    }
    if let Ok(mut block) = syn::parse::<ItemImpl>(item.clone()) {
        for item in &mut block.items {
            if let ImplItem::Fn(function) = item
                && matches!(function.vis, Visibility::Public(_))
                && is_boxable(&function.sig)
            {
                box_future(&mut function.sig, &mut function.block);
            }
        }
        return block.into_token_stream().into();
    }
    match syn::parse::<ItemFn>(item) {
        Ok(mut function) if is_boxable(&function.sig) => {
            box_future(&mut function.sig, &mut function.block);
            function.into_token_stream().into()
        }
        Ok(_) => quote!(compile_error!("`#[boxed]` is for async functions without type parameters");).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// A function with type parameters is compiled in every crate that calls it, boxed or not.
fn is_boxable(signature: &Signature) -> bool {
    let mut arguments = ImplTraits(false);
    arguments.visit_signature_mut(&mut signature.clone());
    signature.asyncness.is_some() && signature.generics.type_params().next().is_none() && !arguments.0
}

struct ImplTraits(bool);

impl VisitMut for ImplTraits {
    fn visit_type_impl_trait_mut(&mut self, _: &mut TypeImplTrait) {
        self.0 = true;
    }
}

fn box_future(signature: &mut Signature, body: &mut syn::Block) {
    let named: Vec<Lifetime> = signature.generics.lifetimes().map(|one| one.lifetime.clone()).collect();
    signature.asyncness = None;
    for argument in &mut signature.inputs {
        ElidedLifetimes.visit_fn_arg_mut(argument);
    }
    ElidedLifetimes.visit_return_type_mut(&mut signature.output);
    let output = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, output) => output.to_token_stream(),
    };
    signature.generics.params.insert(0, parse_quote!('boxed));
    let has_self = signature.inputs.iter().any(|one| matches!(one, FnArg::Receiver(_)));
    let bounds = &mut signature.generics.make_where_clause().predicates;
    if has_self {
        bounds.push(parse_quote!(Self: 'boxed));
    }
    for lifetime in named {
        bounds.push(parse_quote!(#lifetime: 'boxed));
    }
    signature.output = parse_quote!(
        -> ::core::pin::Pin<::std::boxed::Box<dyn ::core::future::Future<Output = #output> + ::core::marker::Send + 'boxed>>
    );
    let brace = body.brace_token;
    *body = parse_quote!({ ::std::boxed::Box::pin(async move #body) });
    body.brace_token = brace;
}

/// Replaces every elided lifetime of the signature with the future's own: borrowed arguments live as long as the
/// future.
struct ElidedLifetimes;

impl VisitMut for ElidedLifetimes {
    fn visit_receiver_mut(&mut self, receiver: &mut syn::Receiver) {
        if let Some((_, lifetime @ None)) = &mut receiver.reference {
            *lifetime = Some(parse_quote!('boxed));
        }
        if receiver.colon_token.is_none() {
            *receiver.ty = match (&receiver.reference, &receiver.mutability) {
                (Some((_, lifetime)), Some(_)) => parse_quote!(&#lifetime mut Self),
                (Some((_, lifetime)), None) => parse_quote!(&#lifetime Self),
                (None, _) => parse_quote!(Self),
            };
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| parse_quote!('boxed));
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = parse_quote!('boxed);
        }
    }

    /// `Fn(&T)` and `fn(&T)` have their own lifetimes.
    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}

    fn visit_type_bare_fn_mut(&mut self, _: &mut TypeBareFn) {}
}
