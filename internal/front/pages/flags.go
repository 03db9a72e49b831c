package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FlagsPath is where Flags are served.
const FlagsPath = "/flagz"

// Flags are the settings of this process by the names of its flags, given or not.
type Flags map[string]string

// flagz is Flags as clients read them, of either version.
type flagz struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        name  `json:"metadata"`
	Flags           Flags `json:"flags,omitempty"`
}

// Serve responds with the flags.
func (f Flags) Serve(w http.ResponseWriter, r *http.Request) {
	page{"Flagz", f.text, f.object}.serve(w, r)
}

func (f Flags) object(apiVersion string) any {
	return flagz{TypeMeta: metav1.TypeMeta{Kind: "Flagz", APIVersion: apiVersion}, Metadata: name{component}, Flags: f}
}

func (f Flags) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%s=%s\n", name, f[name])
	}
	return b.String()
}
