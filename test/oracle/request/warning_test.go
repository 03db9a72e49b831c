package request

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/warning"

	"github.com/bowsprit/bowsprit/internal/request"
)

func TestWarningsMatchKubernetes(t *testing.T) {
	quiet(t)
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "é", "日", `"`, `\`, " ", "\n", "\xff", "\x7f", "bb"}
	for range 1_500 {
		var texts []string
		for range rng.IntN(40) {
			var text strings.Builder
			for range rng.IntN(3) {
				text.WriteString(alphabet[rng.IntN(len(alphabet))])
			}
			if rng.IntN(3) > 0 {
				text.WriteString(strings.Repeat(alphabet[rng.IntN(3)],
					rng.IntN([]int{10, 300, 600, 5000}[rng.IntN(4)])))
			}
			texts = append(texts, text.String())
		}

		w := httptest.NewRecorder()
		filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for _, text := range texts {
				warning.AddWarning(r.Context(), "", text)
			}
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))

		scope := &request.Scope{}
		ctx := request.NewContext(context.Background(), scope)
		for _, text := range texts {
			request.Warn(ctx, text)
		}
		if got, want := scope.Warnings(), w.Header()["Warning"]; !reflect.DeepEqual(got, want) &&
			len(got)+len(want) > 0 {
			t.Fatalf("%d texts %q:\n got %d %q\nwant %d %q", len(texts), texts, len(got), got, len(want), want)
		}
	}
}
