package assistant

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
)

// attempts bounds the attempts of a write to an object that gets a new status meanwhile.
const attempts = 5

// executeInput are the parameters of apply and delete.
type executeInput struct {
	Plan string `json:"plan" jsonschema:"the name of the plan"`
	Size
}

func (t *Tools) apply(ctx context.Context, in *executeInput) (*answer.Answer, error) {
	one, err := t.use(ctx, in.Plan, applies)
	if err != nil {
		return nil, err
	}
	return t.execute(ctx, one, func(s *step, before *unstructured.Unstructured) (string, error) {
		after, err := t.send(ctx, one, s, before)
		switch {
		case err != nil:
			return "", fieldConflict(err)
		case before == nil:
			return "created", nil
		case before.GetResourceVersion() == after.GetResourceVersion():
			return "unchanged", nil
		}
		return "changed", nil
	})
}

func (t *Tools) delete(ctx context.Context, in *executeInput) (*answer.Answer, error) {
	one, err := t.use(ctx, in.Plan, deletes)
	if err != nil {
		return nil, err
	}
	return t.execute(ctx, one, func(s *step, before *unstructured.Unstructured) (string, error) {
		if before == nil { // the plan deletes an existing object
			return "", errors.New("it does not exist")
		}
		return "deleted", t.remove(ctx, s, before)
	})
}

// execute changes the objects of a plan in their order, until one fails. If one of them is not in its planned state,
// execute changes nothing.
func (t *Tools) execute(
	ctx context.Context, one *plan, change func(s *step, before *unstructured.Unstructured) (string, error),
) (*answer.Answer, error) {
	if err := t.allUnchanged(ctx, one); err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	done := 0
	for i := range one.steps {
		s := &one.steps[i]
		result, err := t.once(ctx, s, change)
		if err != nil {
			ans.Text(fmt.Sprintf("failed: %s: %s", s, err))
			break
		}
		done++
		ans.Text(result + ": " + s.String())
	}
	ans.Field("objects", "%d of %d were executed", done, len(one.steps))
	if done < len(one.steps) {
		ans.Field("failed", "the last line of the data has the error; later objects were not tried")
	}
	return ans, nil
}

// once changes one object. It tries again if only the object's status has changed meanwhile.
func (t *Tools) once(
	ctx context.Context, s *step, change func(s *step, before *unstructured.Unstructured) (string, error),
) (result string, err error) {
	for range attempts {
		var before *unstructured.Unstructured
		if before, err = t.unchanged(ctx, s); err != nil {
			return "", err
		}
		result, err = change(s, before)
		if !apierrors.IsConflict(err) || ownedByOthers(err) {
			return result, err
		}
	}
	return "", err
}

// remove deletes the object of a step in the state before. dryRun has no or one value.
func (t *Tools) remove(ctx context.Context, s *step, before *unstructured.Unstructured, dryRun ...string) error {
	uid, version := before.GetUID(), before.GetResourceVersion()
	return t.client(s).Delete(ctx, s.object.GetName(), metav1.DeleteOptions{
		DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}
