// Package invalid makes the answer to an object that breaks rules: a 422 with a cause for each error.
//
// It stands below all validation. New returns the same Status as apierrors.NewInvalid, with bounded size and linear
// cost: apierrors.NewInvalid is quadratic in the number of errors, which a client sizes with a list of a million
// invalid elements. New stops at a size (Most). The functions are pure and safe for concurrent use.
package invalid

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Most is the size in bytes up to which an answer lists errors. The message and the causes each have this size.
const Most = 1 << 20

// mostText is the size of the longest text of one error: the invalid value and the reason.
const mostText = 128 << 10

// New returns the answer to an object of a kind. Errors beyond Most are counted only.
func New(kind schema.GroupKind, name string, errs field.ErrorList) *apierrors.StatusError {
	l := list(errs)
	message := fmt.Sprintf("%s %q is invalid", kind.String(), name)
	if len(errs) > 0 {
		message += ": " + l.message()
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnprocessableEntity,
		Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{
			Group: kind.Group, Kind: kind.Kind, Name: name, Causes: l.causes,
		},
		Message: message,
	}}
}

// Join returns one error with the text of all, as ErrorList.ToAggregate does, up to Most. It is nil without errors.
func Join(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	l := list(errs)
	return errors.New(l.message())
}

// errorList are the errors that an answer has room for.
type errorList struct {
	causes   []metav1.StatusCause
	messages []string // each once
}

func list(errs field.ErrorList) errorList {
	l := errorList{causes: make([]metav1.StatusCause, 0, min(len(errs), 1000))}
	seen := make(map[string]bool, min(len(errs), 1000))
	size := 0
	for i, e := range errs {
		body := bodyOf(e)
		if size += len(body) + len(e.Field); size > Most && i > 0 {
			rest := fmt.Sprintf("%d more errors are not listed", len(errs)-i)
			l.causes = append(l.causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: rest})
			l.messages = append(l.messages, rest)
			return l
		}
		l.causes = append(l.causes, metav1.StatusCause{Type: metav1.CauseType(e.Type), Message: body, Field: e.Field})
		if message := e.Field + ": " + body; !seen[message] {
			seen[message] = true
			l.messages = append(l.messages, message)
		}
	}
	return l
}

// message joins the messages as Kubernetes does.
func (l errorList) message() string {
	if len(l.messages) == 1 {
		return l.messages[0]
	}
	return "[" + strings.Join(l.messages, ", ") + "]"
}

// bodyOf returns the text of an error without the field. In a longer text than mostText, the value is cut before the
// reason. A long string is cut before it is quoted.
func bodyOf(e *field.Error) string {
	short := *e
	if value, ok := e.BadValue.(string); ok && len(value) > mostText {
		short.BadValue = Cut(value, mostText)
	}
	short.Detail = ""
	value, reason := short.ErrorBody(), e.Detail
	if reason != "" {
		reason = ": " + reason
	}
	if len(value)+len(reason) > mostText {
		reason = Cut(reason, mostText/2)
		value = Cut(value, mostText-len(reason))
	}
	return value + reason
}

// Cut returns a text of at most about most bytes: a longer one ends with three dots.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "..."
}
