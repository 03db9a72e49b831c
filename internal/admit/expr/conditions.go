package expr

import (
	"context"

	"github.com/google/cel-go/common/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Held is the result of match conditions.
type Held struct {
	// All is true if each of them is true.
	All bool
	// Errors is the number of conditions that could not be evaluated.
	Errors int
}

// Hold evaluates match conditions. An error means that none is false and some could not be evaluated, or that the
// budget is used up. The failure policy decides about its effect.
func Hold(ctx context.Context, conditions []*Expression, in *Input) (Held, error) {
	if len(conditions) == 0 {
		return Held{All: true}, nil
	}
	results, _, err := Run(ctx, conditions, in, MatchConditionBudget)
	if err != nil {
		return Held{}, err
	}
	var errs []error
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
		if r.Value == types.False {
			return Held{Errors: len(errs)}, nil
		}
	}
	if len(errs) > 0 {
		return Held{Errors: len(errs)}, utilerrors.NewAggregate(errs)
	}
	return Held{All: true}, nil
}
