package quantity

import (
	"strconv"
	"strings"
)

// plainLength is the length up to which a quantity without an exponent needs no measurement: it causes less than a
// microsecond of work.
const plainLength = 40

// nano is the number of decimal places that quantities keep.
const nano = 9

// text is a quantity taken apart in the same way as resource.ParseQuantity takes it.
type text struct {
	whole    string // as written
	plain    bool   // short and without an exponent, or no quantity; the other fields are empty
	negative bool
	digits   int    // of the number, without leading zeros
	num      string // before the point, without leading zeros
	denom    string // behind the point
	suffix   string
	decimal  bool  // the suffix is a power of ten
	exponent int64 // the power of ten, if decimal
}

// scan takes a quantity apart. The cost is linear in its length.
func scan(s string) text {
	if len(s) <= plainLength && strings.IndexByte(s, 'e') < 0 && strings.IndexByte(s, 'E') < 0 {
		return text{whole: s, plain: true}
	}
	none := text{whole: s, plain: true}
	t := text{whole: s}
	rest := strings.TrimSpace(s) // as the library does with JSON
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		t.negative = rest[0] == '-'
		rest = rest[1:]
	}
	number := rest[:run(rest)]
	t.num, rest = number, rest[len(number):]
	if strings.HasPrefix(rest, ".") {
		t.denom = rest[1 : 1+run(rest[1:])]
		rest = rest[1+len(t.denom):]
	}
	if len(t.num)+len(t.denom) == 0 {
		return none
	}
	t.num = strings.TrimLeft(t.num, "0")
	t.digits = len(t.num) + len(t.denom)
	t.suffix = rest
	switch power, known := suffixes[rest]; {
	case known:
		t.decimal, t.exponent = true, power
	case rest == "Ki", rest == "Mi", rest == "Gi", rest == "Ti", rest == "Pi", rest == "Ei":
	case len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E'):
		power, err := strconv.ParseInt(rest[1:], 10, 64)
		if err != nil {
			return none
		}
		// The library cuts the exponent to 32 bits.
		t.decimal, t.exponent = true, int64(int32(power)) //nolint:gosec // as the library
	default:
		return none
	}
	return t
}

// suffixes are the suffixes of powers of ten.
var suffixes = map[string]int64{
	"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}

// run returns the number of decimal digits at the beginning of s.
func run(s string) int {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// tooLarge reports whether the quantity alone is beyond the limits.
func (t text) tooLarge() bool {
	return !t.plain && (t.exponent < -MaxExponent || t.exponent > MaxExponent || t.work() > maxWork)
}

// work estimates the nanoseconds that the library needs to parse and print the short form.
func (t text) work() int64 {
	if t.plain {
		return 0
	}
	digits := int64(t.digits)
	if t.decimal && t.exponent-int64(len(t.denom)) < -nano {
		// The short form has fewer digits; cutting the text is linear.
		digits = max(0, digits+t.exponent-int64(len(t.denom))+nano)
	}
	const most = 1 << 22 // the squares below stay within 64 bits
	digits = min(digits, most)
	parse := digits * digits / 1600
	if t.decimal && digits <= 18 {
		return parse // an int64 with a scale
	}
	// The library writes out the zeros of the exponent, and takes away zeros at the end one by one.
	zeros := int64(0)
	if t.decimal {
		zeros = min(max(0, t.exponent-int64(len(t.denom))), most)
	}
	written := digits + zeros
	zeros += int64(trailingZeros(t.num + t.denom))
	return parse + zeros*written/4
}

func trailingZeros(s string) int { return len(s) - len(strings.TrimRight(s, "0")) }

// short returns a text for the same quantity that the library parses in little time: places below a billionth are
// rounded away from zero, as the library does.
func (t text) short() string {
	scale := int64(len(t.denom)) - t.exponent // decimal places
	switch {
	case t.plain:
		return t.whole
	case !t.decimal || scale <= 2*nano && t.exponent <= 2*nano:
		return t.withoutZeros()
	case t.exponent > 0:
		if strings.Trim(t.num+t.denom, "0") == "" {
			return "0e0" // zero has no use for zeros
		}
		return t.withoutZeros()
	}
	all := strings.TrimLeft(t.num+t.denom, "0")
	kept := int64(len(all)) - (scale - nano)
	cut := all
	if kept > 0 {
		all, cut = all[:kept], all[kept:]
	} else {
		all = "0"
	}
	if strings.Trim(cut, "0") != "" {
		all = increment(all)
	}
	if t.negative {
		all = "-" + all
	}
	if _, named := suffixes[t.suffix]; named {
		return all + "n"
	}
	return all + "e-9"
}

// withoutZeros returns the text without leading zeros if the library parses all of them, slowly: it does so with more
// than 18 digits, and with a point before a binary suffix. It keeps other texts as they are: it prints some unchanged.
func (t text) withoutZeros() string {
	if t.digits <= 18 && (t.decimal || t.denom == "" && t.digits < 4) {
		return t.whole
	}
	sign := ""
	if t.negative {
		sign = "-"
	}
	return sign + t.num + "." + t.denom + t.suffix
}

// increment adds one to a decimal number.
func increment(digits string) string {
	kept := strings.TrimRight(digits, "9")
	nines := len(digits) - len(kept)
	if kept == "" {
		return "1" + strings.Repeat("0", nines)
	}
	last := len(kept) - 1
	return kept[:last] + string(kept[last]+1) + strings.Repeat("0", nines)
}
