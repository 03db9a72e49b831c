package cel

import (
	"fmt"
	"strings"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// message evaluates a messageExpression. It returns "" if the result is not a usable message, and a *stopError if
// evaluation must end.
func (e *evaluation) message(x *evaluable, vars *activation) (string, error) {
	out, err := e.evaluate(x, vars)
	if stop, ok := err.(*stopError); ok {
		switch stop.reason {
		case stopBudget:
			stop.text = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
		case stopCall:
			stop.text = fmt.Sprintf(
				"no further validation rules will be run due to call cost exceeds limit for messageExpression: %q",
				x.source)
		}
		return "", stop
	}
	if err != nil {
		return "", err
	}
	text, _ := out.Value().(string)
	text = strings.TrimSpace(text)
	if len(text) > celconfig.MaxEvaluatedMessageExpressionSizeBytes || strings.Contains(text, "\n") {
		return "", nil
	}
	return text, nil
}
