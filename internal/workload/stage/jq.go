package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/itchyny/gojq"
)

// query is a jq expression. It sees no environment, no files and no modules.
type query struct {
	text string
	code *gojq.Code

	mu sync.Mutex
	// run is the current evaluation; the functions spend its budget.
	run *evaluation
}

// evaluation is the context of one evaluation. jq checks it before each instruction, so evaluation counts the
// instructions.
type evaluation struct {
	context.Context
	budget
	over  chan struct{}
	ended bool
}

// Done implements context.Context.
func (e *evaluation) Done() <-chan struct{} {
	if e.step(1) != nil && !e.ended {
		e.ended = true
		close(e.over)
	}
	return e.over
}

// Err implements context.Context.
func (e *evaluation) Err() error { return e.spent }

func compileJQ(text string) (*query, error) {
	if len(text) > expressionMost {
		return nil, fmt.Errorf("jq: has %d bytes: use %d at most", len(text), expressionMost)
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	if _, err := gojq.Compile(parsed); err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	if err := bind(parsed); err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	q := &query{text: text}
	if q.code, err = gojq.Compile(parsed, q.functions()...); err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	return q, nil
}

// values returns the values of the expression without null, none if it fails with this object.
func (q *query) values(ctx context.Context, o *Object) (found []any, err error) {
	if o.forJQ == nil {
		var self any
		if err := json.Unmarshal(o.JSON, &self); err != nil {
			return nil, err
		}
		o.forJQ = self
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.run = &evaluation{Context: ctx, budget: newBudget(ctx), over: make(chan struct{})}
	defer func() { q.run = nil }()
	values := q.code.RunWithContext(q.run, o.forJQ)
	for {
		v, more := values.Next()
		if _, failed := v.(error); failed || !more {
			if err := q.run.spent; err != nil {
				return nil, fmt.Errorf("jq %q: %w", q.text, err)
			}
			if failed {
				return nil, nil
			}
			return found, nil
		}
		if v != nil {
			found = append(found, v)
		}
	}
}

// functions returns the functions that replace jq's own after bind.
func (q *query) functions() (out []gojq.CompilerOption) {
	for name, one := range bounded {
		out = append(out, gojq.WithFunction(boundName(name), one.arity, one.arity, func(v any, args []any) any {
			if name == "_each/0" {
				return loop(&q.run.budget, v)
			}
			return one.call(&q.run.budget, v, args)
		}))
	}
	return out
}

// loop returns a value that a loop iterates over: jq makes a list of its items.
func loop(b *budget, v any) any {
	n := 0
	switch v := v.(type) {
	case []any:
		n = len(v)
	case map[string]any:
		n = len(v)
	}
	if err := b.spend("a loop", 2*word*n); err != nil {
		return err
	}
	return v
}

// boundedFunction is a function of jq within a budget.
type boundedFunction struct {
	arity int
	// estimate returns about how many bytes it works with; nil for a few times its arguments.
	estimate func(v any, args []any, size int) int
	code     *gojq.Code
	name     string
}

func (f *boundedFunction) call(b *budget, v any, args []any) any {
	size := 0
	for _, one := range append([]any{v}, args...) {
		n, err := sizeOf(one)
		if err != nil {
			b.spent = fmt.Errorf("%s: %w", f.name, err)
			return b.spent
		}
		size = sum(size, n)
	}
	if f.estimate != nil && size <= valueMost {
		size = max(size, f.estimate(v, args, size))
	}
	if err := b.spend(f.name, size); err != nil {
		return err
	}
	out, ok := f.code.Run(v, args...).Next()
	if !ok {
		return errors.New("no value")
	}
	if _, failed := out.(error); failed {
		return out
	}
	n, err := sizeOf(out)
	if err != nil {
		b.spent = fmt.Errorf("%s: %w", f.name, err)
		return b.spent
	}
	if err := b.spend(f.name, n); err != nil {
		return err
	}
	return out
}
