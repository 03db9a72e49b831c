package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

func TestRunsController(t *testing.T) {
	t.Parallel()
	const gc, namespace, migration = "garbage-collector-controller", "namespace-controller",
		"storage-version-migrator-controller"
	all := []string{gc, namespace, migration}
	for enabled, want := range map[string]string{
		"*":                                   strings.Join(all, " "),
		"-*":                                  "", // as in kube-apiserver, which runs no controllers
		namespace:                             namespace,
		"-" + namespace:                       "", // as in Kubernetes, without a "*" only named ones run
		"*,-" + gc:                            namespace + " " + migration,
		"*,-garbagecollector":                 namespace + " " + migration,
		"-" + gc + ",*," + gc:                 namespace + " " + migration,
		namespace + ",-*," + migration:        namespace + " " + migration,
		"namespace,-*,storage-version-gc,svm": namespace + " " + migration,
	} {
		runs := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return !kinds.RunsController(strings.Split(enabled, ","), name)
		})
		if got := strings.Join(runs, " "); got != want {
			t.Errorf("%q runs %q, want %q", enabled, got, want)
		}
	}
	if !kinds.RunsController(nil, gc) {
		t.Error("without names a controller does not run")
	}
}
