package stage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Object is the input of Stages. It is not safe for concurrent use.
type Object struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	// JSON is the whole object.
	JSON []byte
	// Now is the time of the evaluation.
	Now time.Time

	forJQ, forCEL, forTemplates any // decoded JSON, nil until it is needed
}

// compiled is an expression. Exactly one of its fields is set.
type compiled struct {
	jq  *query
	cel *program
}

// compile returns nil for a nil or empty expression.
func (e *expression) compile() (*compiled, error) {
	switch {
	case e == nil:
		return nil, nil
	case e.CEL != nil:
		p, err := compileCEL(e.CEL.Expression)
		return &compiled{cel: p}, err
	case e.JQ != nil:
		q, err := compileJQ(e.JQ.Expression)
		return &compiled{jq: q}, err
	case e.ExpressionFrom != "":
		q, err := compileJQ(e.ExpressionFrom)
		return &compiled{jq: q}, err
	}
	return nil, nil
}

// condition is a compiled expression of a selector.
type condition struct {
	compiled
	operator string
	values   []string
}

func (r *requirement) compile() (c condition, err error) {
	switch {
	case r.JQ != nil:
		if r.JQ.JQ != nil || r.JQ.CEL != nil {
			return c, errors.New("jq: has key, operator and values, nothing else")
		}
		r = r.JQ
	case r.Key != "":
	case r.CEL != nil:
		c.cel, err = compileCEL(r.CEL.Expression)
		return c, err
	default:
		return c, errors.New("has none of key, jq and cel")
	}
	c.operator, c.values = r.Operator, r.Values
	switch r.Operator {
	case "In", "NotIn":
		if len(r.Values) == 0 {
			return c, fmt.Errorf("operator %s needs values", r.Operator)
		}
	case "Exists", "DoesNotExist":
		if len(r.Values) > 0 {
			return c, fmt.Errorf("operator %s takes no values", r.Operator)
		}
	default:
		return c, fmt.Errorf("operator %q is unknown: use In, NotIn, Exists or DoesNotExist", r.Operator)
	}
	c.jq, err = compileJQ(r.Key)
	return c, err
}

// matches reports whether an object meets the condition. A jq expression that fails has no values.
func (c *condition) matches(ctx context.Context, o *Object) (bool, error) {
	if c.cel != nil {
		return c.cel.asBool(ctx, o)
	}
	found, err := c.jq.values(ctx, o)
	if err != nil {
		return false, err
	}
	switch c.operator {
	case "In":
		return slices.ContainsFunc(found, c.isList), nil
	case "NotIn":
		return !slices.ContainsFunc(found, c.isList), nil
	case "Exists":
		return len(found) > 0, nil
	}
	return len(found) == 0, nil
}

// isList reports whether a value is among the values of the condition. kwok compares strings, booleans and jq's
// numbers.
func (c *condition) isList(v any) bool {
	switch v := v.(type) {
	case string:
		return slices.Contains(c.values, v)
	case bool:
		return slices.Contains(c.values, strconv.FormatBool(v))
	case int:
		return slices.Contains(c.values, strconv.Itoa(v))
	}
	return false
}

// number is a number that is fixed or read from an object.
type number struct {
	value int64
	from  *compiled
}

// get returns the number; false if the object has a string there that is not a number. Without a value in the object it
// returns the fixed number.
func (n number) get(ctx context.Context, o *Object) (int64, bool, error) {
	switch {
	case n.from == nil:
	case n.from.cel != nil:
		v, err := n.from.cel.asInt(ctx, o)
		return v, err == nil, err
	default:
		found, err := n.from.jq.values(ctx, o)
		if err != nil {
			return 0, false, err
		}
		if len(found) == 0 {
			break
		}
		switch v := found[0].(type) {
		case string:
			i, err := strconv.ParseInt(v, 0, 0)
			return i, err == nil, nil
		case float64:
			return whole(v), true, nil
		case int: // jq's length
			return int64(v), true, nil
		}
	}
	return n.value, true, nil
}

// whole returns the whole part of a number, within the type.
func whole(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f) // 0 if it is not a number
}

// span is a duration that is fixed or read from an object. The zero value means none.
type span struct {
	milliseconds *int64
	from         *compiled
}

// get returns the span; false if there is none or the object has an empty string there. A string is a duration, or the
// time at which the span ends. For any other value, or none, get returns the fixed span.
func (s span) get(ctx context.Context, o *Object) (time.Duration, bool, error) {
	switch {
	case s.from == nil:
	case s.from.cel != nil:
		d, err := s.from.cel.asDuration(ctx, o)
		return d, err == nil, err
	default:
		found, err := s.from.jq.values(ctx, o)
		if err != nil {
			return 0, false, err
		}
		if len(found) == 0 {
			break
		}
		text, ok := found[0].(string)
		if ok && text == "" {
			return 0, false, nil
		}
		if at, err := time.Parse(time.RFC3339Nano, text); ok && err == nil {
			return at.Sub(o.Now), true, nil
		}
		if d, err := time.ParseDuration(text); ok && err == nil {
			return d, true, nil
		}
	}
	if s.milliseconds == nil {
		return 0, false, nil
	}
	return time.Duration(min(*s.milliseconds, longest.Milliseconds())) * time.Millisecond, true, nil
}
