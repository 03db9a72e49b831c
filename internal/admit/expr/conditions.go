package expr

import (
	"context"

	"github.com/google/cel-go/common/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Held is what came of match conditions.
type Held struct {
	// All tells that each of them is true.
	All bool
	// Errors is how many could not be evaluated.
	Errors int
}

// Hold runs match conditions. An error means that none is false and some could not be evaluated, or that the budget is
// spent. What it leads to is a question of failure policy.
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
