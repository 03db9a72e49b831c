package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/itchyny/gojq"
)

// patience is the timeout of an expression: one that does not terminate must not block others.
const patience = time.Second

// query is a jq expression. It sees no environment, no files and no modules.
type query struct {
	text string
	code *gojq.Code
}

func compileJQ(text string) (*query, error) {
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, fmt.Errorf("jq %q: %w", text, err)
	}
	return &query{text, code}, nil
}

// run returns the values of the expression without null, none if it fails with this object.
func (q *query) run(ctx context.Context, o *Object) (found []any, err error) {
	if o.forJQ == nil {
		if err := json.Unmarshal(o.JSON, &o.forJQ); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	values := q.code.RunWithContext(ctx, o.forJQ)
	for {
		v, more := values.Next()
		if _, failed := v.(error); failed || !more {
			if err := ctx.Err(); err != nil {
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
