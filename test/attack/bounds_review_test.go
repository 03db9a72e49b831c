package attack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestReviews sends access reviews with as many requirements as the charge for memory allows. TestSelectorsAreLinear of
// internal/feature/review shows that their cost grows with their size only.
func TestReviews(t *testing.T) {
	t.Parallel()
	mallory := as(t, victim(t), "mallory")
	for _, c := range []struct {
		name, element string // # is the number of the element
		count, code   int
	}{
		{"requirements", `{"key":"k#","operator":"In","values":["a"]}`, 3000, http.StatusCreated},
		{"equal requirements", `{"key":"k","operator":"Exists"}`, 3000, http.StatusCreated},
		{"empty requirements", `{}`, 10_000, http.StatusUnprocessableEntity},
		{"wrong requirements", `{"key":"-#","operator":"In"}`, 3000, http.StatusUnprocessableEntity},
		{"unknown operators", `{"key":"k#","operator":"New"}`, 3000, http.StatusCreated},
	} {
		var list strings.Builder
		for i := range c.count {
			if i > 0 {
				list.WriteByte(',')
			}
			list.WriteString(strings.ReplaceAll(c.element, "#", fmt.Sprint(i)))
		}
		for _, selector := range []string{"labelSelector", "fieldSelector"} {
			for _, query := range []string{"", "?explain=true"} {
				body := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{` +
					`"resourceAttributes":{"verb":"list","resource":"pods","` + selector + `":{"requirements":[` +
					list.String() + `]}}}}`
				code, status := mallory.ask(t, http.MethodPost,
					"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"+query, "application/json", body)
				if code != c.code || len(status.Message) > 2<<20 {
					t.Errorf("%s of %s%s: got %d with a message of %d bytes, want %d", c.name, selector, query, code,
						len(status.Message), c.code)
				}
			}
		}
	}
}
