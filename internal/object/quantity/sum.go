package quantity

import (
	"cmp"
	"math/big"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// writable is the number of decimal digits up to which quantities are written out.
const writable = 1000

// number is a quantity as digits and a power of ten, which are not multiplied.
type number struct {
	digits *big.Int
	scale  int64 // of the last digit
	top    int64 // about the power of ten of the first digit
}

// numberOf returns a quantity's number without changing it.
func numberOf(q resource.Quantity) number {
	dec := q.AsDec() // q is a copy: an inf.Dec that it has is shared and not changed below
	n := number{digits: dec.UnscaledBig(), scale: -int64(dec.Scale())}
	n.top = n.scale + int64(n.digits.BitLen())*30103/100000
	return n
}

// large reports whether the digits of a quantity are too many to be written out.
func (n number) large() bool { return n.top > writable || n.scale > writable }

// isSmall reports without an allocation that q is a whole number with few digits.
func isSmall(q *resource.Quantity) bool {
	_, ok := q.AsInt64()
	return ok
}

// Cmp compares two quantities: -1 if a is less than b, 0 if they are equal, 1 if a is greater.
func Cmp(a, b resource.Quantity) int {
	if isSmall(&a) && isSmall(&b) {
		return a.Cmp(b)
	}
	x, y := numberOf(a), numberOf(b)
	if !x.large() && !y.large() {
		return a.Cmp(b)
	}
	return compare(x, y)
}

// compare compares two numbers. At least one of them is large.
func compare(x, y number) int {
	sign := x.digits.Sign()
	switch other := y.digits.Sign(); {
	case sign != other:
		return cmp.Compare(sign, other)
	case sign == 0:
		return 0
	case x.top > y.top+1:
		return sign
	case y.top > x.top+1:
		return -sign
	}
	// The first digits stand at about the same place. The last ones are no farther apart than the numbers are long.
	low := min(x.scale, y.scale)
	return x.above(low).Cmp(y.above(low))
}

// above returns the number in units of ten to the power of scale.
func (n number) above(scale int64) *inf.Dec {
	return inf.NewDecBig(n.digits, inf.Scale(scale-n.scale)) //nolint:gosec // both are scales of quantities
}

// Add adds q to sum. If a term has more than a thousand digits, the sum is the term of the larger magnitude: the digits
// of the exact sum are not written out.
func Add(sum *resource.Quantity, q resource.Quantity) {
	if isSmall(sum) && isSmall(&q) {
		sum.Add(q)
		return
	}
	x, y := numberOf(*sum), numberOf(q)
	if !x.large() && !y.large() {
		sum.Add(q)
		return
	}
	opposite := x.digits.Sign() != y.digits.Sign()
	x.digits, y.digits = new(big.Int).Abs(x.digits), new(big.Int).Abs(y.digits)
	switch order := compare(x, y); {
	case order < 0:
		*sum = q.DeepCopy()
	case order == 0 && opposite:
		*sum = resource.Quantity{Format: sum.Format}
	}
}

// Sub subtracts q from sum, within the limit of Add.
func Sub(sum *resource.Quantity, q resource.Quantity) {
	q = q.DeepCopy()
	q.Neg()
	Add(sum, q)
}
