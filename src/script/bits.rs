//! The module `bit`: operations on 32-bit integers, as in Lua BitOp.

use std::ffi::c_int;

use super::lua::{Lua, Returns};
use super::run::set_functions;

/// Pushes the module's table.
pub(super) fn push(lua: Lua) {
    lua.push_table(0, 12);
    let table = lua.top();
    set_functions! { lua, table,
        "tobit" = |lua| give(lua, integer(lua, 1)),
        "bnot" = |lua| give(lua, !integer(lua, 1)),
        "bswap" = |lua| give(lua, integer(lua, 1).swap_bytes()),
        "band" = |lua| fold(lua, |one, other| one & other),
        "bor" = |lua| fold(lua, |one, other| one | other),
        "bxor" = |lua| fold(lua, |one, other| one ^ other),
        "lshift" = |lua| shift(lua, |number, by| number << by),
        "rshift" = |lua| shift(lua, |number, by| number >> by),
        "arshift" = |lua| shift(lua, |number, by| (number as i32 >> by) as u32),
        "rol" = |lua| shift(lua, u32::rotate_left),
        "ror" = |lua| shift(lua, u32::rotate_right),
        "tohex" = to_hexadecimal,
    }
}

/// The argument modulo 2^32, a fraction rounded to the nearest integer, halves to even ones.
fn integer(lua: Lua, argument: c_int) -> u32 {
    // The sum's mantissa ends at the integer's last bit.
    const ALIGN: f64 = 6_755_399_441_055_744.0;
    (lua.check_number(argument) + ALIGN).to_bits() as u32
}

fn give(lua: Lua, number: u32) -> Returns {
    lua.push_number(f64::from(number as i32));
    Ok(1)
}

fn fold(lua: Lua, operation: fn(u32, u32) -> u32) -> Returns {
    let mut result = integer(lua, 1);
    for argument in 2..=lua.top() {
        result = operation(result, integer(lua, argument));
    }
    give(lua, result)
}

fn shift(lua: Lua, operation: fn(u32, u32) -> u32) -> Returns {
    let number = integer(lua, 1);
    let by = integer(lua, 2) & 31;
    give(lua, operation(number, by))
}

/// `tohex(x [, digits])`; negative digits are upper-case ones.
fn to_hexadecimal(lua: Lua) -> Returns {
    let number = integer(lua, 1);
    let wanted = if lua.top() < 2 { 8 } else { integer(lua, 2) as i32 };
    let letters = if wanted < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let count = wanted.unsigned_abs().min(8) as usize;
    let mut digits = [0; 8];
    for (position, digit) in digits.iter_mut().rev().enumerate() {
        *digit = letters[(number >> (4 * position) & 15) as usize];
    }
    lua.push_bytes(&digits[8 - count..]);
    Ok(1)
}
