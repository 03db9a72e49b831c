package workloads

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// patience bounds every wait; it is reached only if a test fails.
const patience = 60 * time.Second

// TestControllersAgree tells each story of testdata to a server whose controllers are its own and to one with
// kube-controller-manager's, and compares what is there at the end, and the events. A line of a story is one of
//
//	# text
//	apply                  and the objects, in YAML, up to an empty line
//	patch KIND/NAME JSON   a merge patch
//	delete KIND/NAME       and what it controls; orphan KIND/NAME leaves that
//	gone KIND/NAME         waits until it is
//	until KIND/NAME PATH=VALUE   by a JSONPath, without braces
//	same                   compares what is there so far; each story ends with it
func TestControllersAgree(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	ours := startServer(t)
	theirs := startServer(t, replaced...)
	startControllers(t, theirs)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			s := &story{namespace: strings.ReplaceAll(name, "_", "-")}
			for _, settings := range []*rest.Config{ours, theirs} {
				client, err := dynamic.NewForConfig(settings)
				if err != nil {
					t.Fatal(err)
				}
				s.clients = append(s.clients, client)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s.run(ctx, t, strings.Split(string(text)+"\n\nsame", "\n"))
		})
	}
}

// story is one that is told to two servers.
type story struct {
	namespace string
	clients   []dynamic.Interface // ours, theirs
}

func (s *story) run(ctx context.Context, t *testing.T, lines []string) {
	t.Helper()
	s.each(t, func(c dynamic.Interface) error {
		namespaces := kinds["pods"]
		namespaces.Resource = "namespaces"
		_, err := c.Resource(namespaces).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.namespace},
		}}, metav1.CreateOptions{})
		return err
	})
	for i := 0; i < len(lines); i++ {
		verb, rest, _ := strings.Cut(lines[i], " ")
		about, rest, _ := strings.Cut(rest, " ")
		switch verb {
		case "", "#":
		case "apply":
			var text []string
			for i++; i < len(lines) && lines[i] != ""; i++ {
				text = append(text, lines[i])
			}
			s.each(t, func(c dynamic.Interface) error { return s.apply(ctx, c, strings.Join(text, "\n")) })
		case "patch":
			s.each(t, func(c dynamic.Interface) error {
				_, err := s.resource(c, about).Patch(ctx, nameOf(about), types.MergePatchType, []byte(rest),
					metav1.PatchOptions{})
				return err
			})
		case "delete", "orphan":
			how := metav1.DeletePropagationBackground
			if verb == "orphan" {
				how = metav1.DeletePropagationOrphan
			}
			s.each(t, func(c dynamic.Interface) error {
				return s.resource(c, about).Delete(ctx, nameOf(about), metav1.DeleteOptions{PropagationPolicy: &how})
			})
		case "gone":
			s.each(t, func(c dynamic.Interface) error {
				return poll(ctx, func() (bool, error) {
					_, err := s.resource(c, about).Get(ctx, nameOf(about), metav1.GetOptions{})
					return apierrors.IsNotFound(err), nil
				})
			})
		case "until":
			s.each(t, func(c dynamic.Interface) error { return s.until(ctx, c, about, rest) })
		case "same":
			s.same(ctx, t)
		default:
			t.Fatalf("%q is no line of a story", lines[i])
		}
	}
}

func (s *story) each(t *testing.T, do func(dynamic.Interface) error) {
	t.Helper()
	for i, c := range s.clients {
		if err := do(c); err != nil {
			t.Fatalf("%s: %v", []string{"our controllers", "Kubernetes' controllers"}[i], err)
		}
	}
}

func nameOf(about string) string { _, name, _ := strings.Cut(about, "/"); return name }

func (s *story) resource(c dynamic.Interface, about string) dynamic.ResourceInterface {
	kind, _, _ := strings.Cut(about, "/")
	if kind == "persistentvolumes" {
		return c.Resource(kinds[kind])
	}
	return c.Resource(kinds[kind]).Namespace(s.namespace)
}

func (s *story) apply(ctx context.Context, c dynamic.Interface, text string) error {
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return err
		}
		resource := strings.ToLower(o.GetKind()) + "s"
		if _, ok := kinds[resource]; !ok {
			return fmt.Errorf("kind %s is not known", o.GetKind())
		}
		_, err := s.resource(c, resource+"/").Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "story"})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *story) until(ctx context.Context, c dynamic.Interface, about, condition string) error {
	at := strings.LastIndex(condition, "=")
	path, want := jsonpath.New("until").AllowMissingKeys(true), condition[at+1:]
	if err := path.Parse("{" + condition[:at] + "}"); err != nil {
		return err
	}
	var got bytes.Buffer
	err := poll(ctx, func() (bool, error) {
		o, err := s.resource(c, about).Get(ctx, nameOf(about), metav1.GetOptions{})
		if err != nil {
			return false, nil // it may come
		}
		got.Reset()
		if err := path.Execute(&got, o.Object); err != nil {
			return false, err
		}
		return got.String() == want, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %s is %q: %w", about, condition, got.String(), err)
	}
	return nil
}

func poll(ctx context.Context, done func() (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true,
		func(context.Context) (bool, error) { return done() })
}

// same waits until both servers have the same: what follows from what has happened may take a while.
func (s *story) same(ctx context.Context, t *testing.T) {
	t.Helper()
	texts := make([]string, len(s.clients))
	err := poll(ctx, func() (done bool, err error) {
		for i, c := range s.clients {
			if texts[i], err = state(ctx, c, s.namespace); err != nil {
				return false, err
			}
		}
		return texts[0] == texts[1], nil
	})
	if err != nil {
		diff := cmp.Diff(strings.Split(texts[1], "\n"), strings.Split(texts[0], "\n"))
		t.Errorf("%v: ours +, Kubernetes' -:\n%s", err, diff)
	}
}
