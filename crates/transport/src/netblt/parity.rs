//! Parity of a buffer's packets: any rows of it, as many as packets are missing, give those back.
//!
//! A row is a sum of the buffer's packets, each times a factor of its own, in the field of 256 elements (polynomials over bits modulo
//! x^8 + x^4 + x^3 + x^2 + 1, as RFC 5510 §8.1 has them for m = 8). The factors are a Cauchy matrix, 1 / (128 + row + packet), every square
//! part of which can be inverted, so that no row is in vain. A packet that is shorter than the others has zeros behind it.

/// Packets that a buffer with parity has at most, and rows.
pub const MOST: usize = 128;

const MODULUS: u16 = 0x11d;

/// The powers of x, twice, and which power each element is.
const TABLES: ([u8; 510], [u8; 256]) = {
    let (mut powers, mut logs) = ([0; 510], [0; 256]);
    let (mut at, mut value) = (0, 1u16);
    while at < 255 {
        powers[at] = value as u8;
        powers[at + 255] = value as u8;
        logs[value as usize] = at as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= MODULUS;
        }
        at += 1;
    }
    (powers, logs)
};

fn times(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let log = |it: u8| usize::from(TABLES.1[usize::from(it)]);
    TABLES.0[log(a) + log(b)]
}

/// 1 / `a`; `a` is not 0.
fn inverse(a: u8) -> u8 {
    TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])]
}

/// What packet `packet` is multiplied with in row `row`; both are below [`MOST`].
fn factor(row: usize, packet: usize) -> u8 {
    inverse((MOST + row) as u8 ^ packet as u8)
}

/// Adds `data` times `factor` to `sum`, as far as both go.
fn add(sum: &mut [u8], data: &[u8], factor: u8) {
    let products: [u8; 256] = std::array::from_fn(|it| times(it as u8, factor));
    sum.iter_mut().zip(data).for_each(|(to, &it)| *to ^= products[usize::from(it)]);
}

/// Adds a row of these octets, cut into packets of so many, to `sum`, which has the length of a packet.
pub fn encode(row: usize, octets: &[u8], packet: usize, sum: &mut [u8]) {
    for (index, data) in octets.chunks(packet).enumerate().take(MOST) {
        add(sum, data, factor(row, index));
    }
}

/// The packets `missing`, each as long as a row, from as many rows of a buffer whose other packets are in place in `octets`. What stands
/// there in place of the missing ones does not matter, nor what is behind the end.
///
/// Rows and missing packets are all different and below [`MOST`]; otherwise there is no result.
pub fn recover(
    octets: &[u8],
    packet: usize,
    missing: &[u16],
    rows: &[(u16, Vec<u8>)],
) -> Option<Vec<Vec<u8>>> {
    let size = missing.len();
    let is_fit = |it: u16| usize::from(it) < MOST;
    if rows.len() != size
        || !missing.iter().chain(rows.iter().map(|it| &it.0)).all(|&it| is_fit(it))
    {
        return None;
    }
    let mut sums: Vec<Vec<u8>> = rows.iter().map(|it| it.1.clone()).collect();
    for (sum, &(row, _)) in sums.iter_mut().zip(rows) {
        for (index, data) in octets.chunks(packet).enumerate().take(MOST) {
            if !missing.contains(&(index as u16)) {
                add(sum, data, factor(row.into(), index));
            }
        }
    }
    let line = |row: u16| missing.iter().map(|&it| factor(row.into(), it.into())).collect();
    solve(rows.iter().map(|it| line(it.0)).collect(), sums)
}

/// The solution of equations, of which `sums` are the right sides.
fn solve(mut matrix: Vec<Vec<u8>>, mut sums: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    for column in 0..sums.len() {
        let pivot = (column..sums.len()).find(|&it| matrix[it][column] != 0)?;
        matrix.swap(column, pivot);
        sums.swap(column, pivot);
        let one = inverse(matrix[column][column]);
        let scaled = |of: &[u8]| of.iter().map(|&it| times(it, one)).collect::<Vec<u8>>();
        let (line, sum) = (scaled(&matrix[column]), scaled(&sums[column]));
        for index in (0..sums.len()).filter(|&it| it != column) {
            let factor = matrix[index][column];
            add(&mut matrix[index], &line, factor);
            add(&mut sums[index], &sum, factor);
        }
        (matrix[column], sums[column]) = (line, sum);
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_field_has_inverses() {
        assert_eq!((times(2, 0x80), times(7, 1), times(0, 9)), (0x1d, 7, 0));
        assert!((1..=255).all(|it| times(it, inverse(it)) == 1));
    }

    proptest! {
        /// Any packets are given back by any rows, as many as they are.
        #[test]
        fn any_rows_give_any_packets_back(
            octets in prop::collection::vec(any::<u8>(), 1..400), packet in 4usize..40,
            order in prop::sample::subsequence((0u16..100).collect::<Vec<_>>(), 0..30),
            rows in prop::sample::subsequence((0u16..128).collect::<Vec<_>>(), 30),
        ) {
            let count = octets.len().div_ceil(packet) as u16;
            let missing: Vec<u16> = order.into_iter().filter(|&it| it < count).collect();
            let rows: Vec<(u16, Vec<u8>)> = rows.into_iter().take(missing.len()).map(|row| {
                let mut sum = vec![0; packet];
                encode(row.into(), &octets, packet, &mut sum);
                (row, sum)
            }).collect();
            let mut spoilt = octets.clone();
            for &it in &missing {
                let from = usize::from(it) * packet;
                let end = spoilt.len().min(from + packet);
                spoilt[from..end].fill(0xaa);
            }
            let found = recover(&spoilt, packet, &missing, &rows).expect("a solution");
            for (it, data) in missing.iter().zip(found) {
                let from = usize::from(*it) * packet;
                let end = octets.len().min(from + packet);
                prop_assert_eq!(&data[..end - from], &octets[from..end]);
            }
        }

        /// Rows that are nonsense end without a panic.
        #[test]
        fn any_rows_are_borne(
            rows in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)), 0..6),
            missing in prop::collection::vec(any::<u16>(), 0..6), packet in 1usize..9,
        ) {
            let _ = recover(&[7; 50], packet, &missing, &rows);
        }
    }
}
