package expr

import (
	"context"

	"github.com/google/cel-go/common/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Hold runs match conditions. false means that one of them is false; an error, that none is and some could not be
// evaluated, or that the budget is spent. What an error leads to is a question of failure policy.
func Hold(ctx context.Context, conditions []*Expression, in *Input) (bool, error) {
	if len(conditions) == 0 {
		return true, nil
	}
	results, _, err := Run(ctx, conditions, in, MatchConditionBudget)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
		if r.Value == types.False {
			return false, nil
		}
	}
	if len(errs) > 0 {
		return false, utilerrors.NewAggregate(errs)
	}
	return true, nil
}
