package stage

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"time"
)

// The bounds of one evaluation of an expression or a template.
const (
	// patience is the timeout of an evaluation: one that does not terminate must not block others.
	patience = time.Second
	// stepsMost is the largest number of steps: instructions of jq, iterations of the loops of a template.
	stepsMost = 250_000
	// memoryMost is the largest total size in bytes of the arguments and results of its functions.
	memoryMost = 64 << 20
	// valueMost is the largest size of one value in bytes.
	valueMost = 4 << 20
	// depthMost is the deepest nesting of lists and objects.
	depthMost = 200
	// textMost is how long the text of a template or an expression may be.
	textMost = 64 << 10
)

// budget is the remaining resources of an evaluation. It belongs to one goroutine.
type budget struct {
	ctx    context.Context
	until  time.Time
	steps  int
	memory int
	spent  error // why the evaluation must end; nil while it may continue
}

func newBudget(ctx context.Context) budget {
	return budget{ctx: ctx, until: time.Now().Add(patience), steps: stepsMost, memory: memoryMost}
}

// clockEvery is after how many steps the clock is read.
const clockEvery = 256

// step takes n steps.
func (b *budget) step(n int) error {
	before := b.steps / clockEvery
	b.steps -= n
	switch {
	case b.spent != nil:
	case b.steps < 0:
		b.spent = fmt.Errorf("it takes more than %d steps: let it do less", stepsMost)
	case b.steps/clockEvery == before:
	case time.Now().After(b.until):
		b.spent = fmt.Errorf("it takes more than %v: let it do less", patience)
	case b.ctx.Err() != nil:
		b.spent = b.ctx.Err()
	}
	return b.spent
}

// spend takes n bytes for a function.
func (b *budget) spend(name string, n int) error {
	switch {
	case b.spent != nil:
	case n > valueMost:
		b.spent = fmt.Errorf("%s works with more than %d bytes: let it do less", name, valueMost)
	case n > b.memory:
		b.spent = fmt.Errorf("its functions work with more than %d bytes: let it do less", memoryMost)
	default:
		b.memory -= n
	}
	if b.spent != nil {
		return b.spent
	}
	return b.step(1 + n/1024)
}

// errDeep is the error for a value that is nested deeper than depthMost, such as a cyclic one.
var errDeep = fmt.Errorf("a value is nested deeper than %d", depthMost)

var errLarge = errors.New("a value is too large")

// sizeOf returns the approximate size of a value in bytes, as a tree: a part that occurs twice counts twice. It stops
// once the size exceeds valueMost.
func sizeOf(v any) (int, error) {
	left := valueMost
	err := measureAny(v, depthMost, &left)
	if errors.Is(err, errLarge) {
		return valueMost + 1, nil
	}
	return valueMost - left, err
}

// word is the approximate size of a value without its content.
const word = 16

// measureAny is measure for the values of JSON, without reflection.
func measureAny(v any, depth int, left *int) error {
	if depth < 0 {
		return errDeep
	}
	if *left -= word; *left < 0 {
		return errLarge
	}
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
	case string:
		*left -= len(v)
	case *big.Int:
		*left -= v.BitLen() / 8
	case []any:
		for _, e := range v {
			if err := measureAny(e, depth-1, left); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			*left -= 2*word + len(k)
			if err := measureAny(e, depth-1, left); err != nil {
				return err
			}
		}
	default:
		return measure(reflect.ValueOf(v), depth, left)
	}
	return nil
}

func measure(v reflect.Value, depth int, left *int) error {
	if depth < 0 {
		return errDeep
	}
	if *left -= word; *left < 0 {
		return errLarge
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return measure(v.Elem(), depth-1, left)
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k <= reflect.Complex128 { // bool and numbers
			*left -= v.Len() * int(v.Type().Elem().Size())
			return nil
		}
		for i := range v.Len() {
			if err := measure(v.Index(i), depth-1, left); err != nil {
				return err
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if err := measure(at.Key(), depth-1, left); err != nil {
				return err
			}
			if err := measure(at.Value(), depth-1, left); err != nil {
				return err
			}
		}
	case reflect.Struct:
		*left -= int(v.Type().Size())
	}
	return nil
}
