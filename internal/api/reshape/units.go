package reshape

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// scale multiplies numbers by a constant. Integers are rounded to the nearest one.
func scale(r *Rule, a, b *schema.Node) (*operation, error) {
	by, err := factor(r.params["by"])
	if err != nil {
		return nil, err
	}
	for _, n := range []*schema.Node{a, b} {
		if n.Type != "integer" && n.Type != "number" {
			return nil, errors.New("the fields must be numbers")
		}
	}
	return &operation{
		forward:  times(by, b.Type == "integer"),
		backward: times(new(big.Rat).Inv(by), a.Type == "integer"),
	}, nil
}

// factor returns the number of a parameter: 1000, 0.5 or "1/60".
func factor(v any) (*big.Rat, error) {
	text, err := textOf(v)
	if err != nil || len(text) > 40 || strings.ContainsAny(text, "eEpPxX") {
		return nil, errors.New(`by must be a number such as 1000 or "1/60"`)
	}
	by, ok := new(big.Rat).SetString(text)
	if !ok || by.Sign() <= 0 {
		return nil, errors.New(`by must be a positive number such as 1000 or "1/60"`)
	}
	return by, nil
}

func times(by *big.Rat, integer bool) func(in, out []any) error {
	num, den := by.Num(), by.Denom()
	small := num.IsInt64() && den.IsInt64()
	return func(in, out []any) error {
		if out[0] = in[0]; isMissing(in[0]) || in[0] == nil {
			return nil
		}
		if n, ok := in[0].(int64); ok && small && fitsProduct(n, num.Int64()) && n*num.Int64()%den.Int64() == 0 {
			out[0] = n * num.Int64() / den.Int64()
			return nil
		}
		x := new(big.Rat)
		switch v := in[0].(type) {
		case int64:
			x.SetInt64(v)
		case float64:
			if x.SetFloat64(v) == nil {
				return errors.New("is not a number")
			}
		default:
			return errors.New("is not a number")
		}
		x.Mul(x, by)
		if !integer {
			f, _ := x.Float64()
			if math.IsInf(f, 0) {
				return errors.New("is too large")
			}
			out[0] = whole(f)
			return nil
		}
		n := nearest(x)
		if !n.IsInt64() {
			return errors.New("is too large")
		}
		out[0] = n.Int64()
		return nil
	}
}

func fitsProduct(a, b int64) bool {
	const most = math.MaxInt32
	return a > -most && a < most && b < most
}

// whole returns a number without a fraction as an integer, as decoded JSON has it.
func whole(f float64) any {
	if n := int64(f); math.Abs(f) < 1<<53 && float64(n) == f {
		return n
	}
	return f
}

// nearest rounds half away from zero.
func nearest(x *big.Rat) *big.Int {
	num := new(big.Int).Mul(x.Num(), big.NewInt(2))
	den := new(big.Int).Mul(x.Denom(), big.NewInt(2))
	if x.Sign() < 0 {
		num.Sub(num, x.Denom())
	} else {
		num.Add(num, x.Denom())
	}
	return num.Quo(num, den)
}

// unit converts between an integer number of units and a text with a unit.
type unit struct {
	write func(n int64) (string, error)
	read  func(text string) (int64, error)
}

// measured returns the constructor of a rule between an integer and a text with a unit; either side may be the integer.
func measured(units map[string]unit) func(r *Rule, a, b *schema.Node) (*operation, error) {
	return func(r *Rule, a, b *schema.Node) (*operation, error) {
		name, _ := r.params["unit"].(string)
		u, ok := units[name]
		if !ok {
			return nil, fmt.Errorf("unit must be one of %s", strings.Join(slices.Sorted(maps.Keys(units)), ", "))
		}
		isText := func(n *schema.Node) bool { return n.Type == "string" || n.IntOrString }
		switch {
		case a.Type == "integer" && isText(b):
			return u.operation(), nil
		case b.Type == "integer" && isText(a):
			return reversed(u.operation(), nil)
		}
		return nil, errors.New("one of the fields must be an integer, the other a string")
	}
}

// operation writes forward and reads backward.
func (u unit) operation() *operation {
	return &operation{
		forward: func(in, out []any) (err error) {
			if out[0] = in[0]; isMissing(in[0]) || in[0] == nil {
				return nil
			}
			n, ok := in[0].(int64)
			if !ok {
				return errors.New("is not an integer")
			}
			out[0], err = u.write(n)
			return err
		},
		backward: func(in, out []any) error {
			if out[0] = in[0]; isMissing(in[0]) || in[0] == nil {
				return nil
			}
			text, err := textOf(in[0])
			if err != nil {
				return err
			}
			n, err := u.read(text)
			out[0] = n
			return err
		},
	}
}

// quantityUnits are the suffixes of quantities, with their sizes in thousandths. "1" stands for no suffix.
var quantityUnits = quantityUnitTable()

func quantityUnitTable() map[string]unit {
	out := map[string]unit{}
	for suffix, size := range map[string]int64{
		"m": 1, "1": 1000, "k": 1e6, "M": 1e9, "G": 1e12, "T": 1e15, "P": 1e18,
		"Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30, "Ti": 1000 << 40,
	} {
		text := strings.TrimPrefix(suffix, "1")
		out[suffix] = unit{
			write: func(n int64) (string, error) { return strconv.FormatInt(n, 10) + text, nil },
			read:  func(text string) (int64, error) { return countQuantity(text, size) },
		}
	}
	return out
}

// countQuantity returns the number of units of size thousandths in a quantity, rounded up.
func countQuantity(text string, size int64) (int64, error) {
	if err := quantity.Check(text, 30); err != nil {
		return 0, err
	}
	q, err := quantity.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%.64q is not a quantity", text)
	}
	exact, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		return 0, fmt.Errorf("%.64q is not a quantity", text)
	}
	exact.Mul(exact, big.NewRat(1000, size))
	n, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() {
		return 0, errors.New("is too large")
	}
	return n.Int64(), nil
}

// durationUnits are the units of Go's durations.
var durationUnits = durationUnitTable()

func durationUnitTable() map[string]unit {
	out := map[string]unit{}
	for name, size := range map[string]time.Duration{
		"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour,
	} {
		out[name] = unit{
			write: func(n int64) (string, error) {
				if n > math.MaxInt64/int64(size) || n < -math.MaxInt64/int64(size) {
					return "", errors.New("is too long")
				}
				return (time.Duration(n) * size).String(), nil
			},
			read: func(text string) (int64, error) {
				d, err := time.ParseDuration(text)
				if err != nil {
					return 0, fmt.Errorf("%.64q is not a duration", text)
				}
				return int64(d / size), nil
			},
		}
	}
	return out
}
