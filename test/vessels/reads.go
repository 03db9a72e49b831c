package vessels

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func testSelectors(c *client) {
	for _, country := range []string{"DE", "DK"} {
		h := c.harbour(strings.ToLower(country), country)
		h.SetLabels(map[string]string{"test": c.namespace, "country": country})
		c.made(c.harbours().Create(c.ctx, h, metav1.CreateOptions{}))
	}
	of := "test=" + c.namespace
	for _, one := range []struct {
		options metav1.ListOptions
		want    int
	}{
		{metav1.ListOptions{LabelSelector: of}, 2},
		{metav1.ListOptions{LabelSelector: of + ",country in (DE,SE)"}, 1},
		{metav1.ListOptions{LabelSelector: of, FieldSelector: "spec.country=DK"}, 1},
		{metav1.ListOptions{FieldSelector: "metadata.name=" + c.namespace + "-de"}, 1},
	} {
		list, err := c.harbours().List(c.ctx, one.options)
		if err != nil || len(list.Items) != one.want {
			c.Errorf("%+v: %d, want %d: %v", one.options, len(list.Items), one.want, err)
		}
	}
	_, err := c.harbours().List(c.ctx, metav1.ListOptions{FieldSelector: "spec.berths=1"})
	c.refused(err, apierrors.IsBadRequest, `field label not supported: spec.berths`)
}

func testPages(c *client) {
	for i := range 7 {
		c.made(c.vessels().Create(c.ctx, vessel(fmt.Sprint("v", i), "Cook"), metav1.CreateOptions{}))
	}
	var names []string
	options := metav1.ListOptions{Limit: 3}
	for {
		page, err := c.vessels().List(c.ctx, options)
		if err != nil {
			c.Fatal(err)
		}
		for _, v := range page.Items {
			names = append(names, v.GetName())
		}
		if options.Continue == "" {
			if left := page.GetRemainingItemCount(); left == nil || *left != 4 {
				c.Errorf("remaining: %v", left)
			}
			// later objects are not in the following pages
			c.made(c.vessels().Create(c.ctx, vessel("v9", "Cook"), metav1.CreateOptions{}))
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "v0 v1 v2 v3 v4 v5 v6" {
		c.Errorf("the pages are %s", got)
	}
}

func testTable(c *client) {
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	var table metav1.Table
	c.get(&table, "application/json;as=Table;v=v1;g=meta.k8s.io", "/apis/"+Group+"/v1/namespaces/"+c.namespace+"/vessels")
	var titles []string
	for _, column := range table.ColumnDefinitions {
		titles = append(titles, column.Name)
	}
	if got := strings.Join(titles, " "); got != "Name Captain Rig Port Age" {
		c.Errorf("the columns are %s", got)
	}
	if len(table.Rows) != 1 || fmt.Sprint(table.Rows[0].Cells[:3]) != "[a Cook Sloop]" {
		c.Errorf("the rows are %+v", table.Rows)
	}
}

// get reads a path in a given encoding.
func (c *client) get(into any, accept, path string) {
	c.Helper()
	config := rest.CopyConfig(c.config)
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	raw, err := k.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).DoRaw(c.ctx)
	if err != nil {
		c.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		c.Fatalf("%v: %s", err, raw)
	}
}

// testWatch watches changes from a list on, disconnects, and resumes at the last event.
func testWatch(c *client) {
	first := c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	list, err := c.vessels().List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	w := c.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	c.made(c.vessels().Create(c.ctx, vessel("b", "Cook"), metav1.CreateOptions{}))
	at := c.next(w, watch.Added, "b").GetResourceVersion()
	w.Stop()
	_ = unstructured.SetNestedField(first.Object, "Ketch", "spec", "kind")
	c.made(c.vessels().Update(c.ctx, first, metav1.UpdateOptions{}))
	if err := c.vessels().Delete(c.ctx, "b", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	w = c.watch(metav1.ListOptions{ResourceVersion: at, AllowWatchBookmarks: true})
	c.is(c.next(w, watch.Modified, "a"), "Ketch", "spec", "kind")
	c.next(w, watch.Deleted, "b")
	w.Stop()

	w = c.watch(metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true,
	})
	defer w.Stop()
	c.next(w, watch.Added, "a")
	mark := c.next(w, watch.Bookmark, "")
	if mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		c.Errorf("the bookmark is %v", mark)
	}
}

func (c *client) watch(o metav1.ListOptions) watch.Interface {
	c.Helper()
	w, err := c.vessels().Watch(c.ctx, o)
	if err != nil {
		c.Fatal(err)
	}
	return w
}

// next expects an event, and skips unexpected bookmarks.
func (c *client) next(w watch.Interface, want watch.EventType, name string) *unstructured.Unstructured {
	c.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				c.Fatalf("the watch has ended before %s %s", want, name)
			}
			if e.Type == watch.Bookmark && want != watch.Bookmark {
				continue
			}
			obj, _ := e.Object.(*unstructured.Unstructured)
			if e.Type != want || obj == nil || obj.GetName() != name {
				c.Fatalf("the event is %s %v, want %s %s", e.Type, e.Object, want, name)
			}
			return obj
		case <-c.ctx.Done():
			c.Fatalf("no event, want %s %s", want, name)
		}
	}
}

// testNamespaces creates objects in existing and missing namespaces, and deletes them with their namespace.
func testNamespaces(c *client) {
	_, err := c.dynamic.Resource(gvr("vessels")).Namespace("absent").Create(c.ctx, vessel("a", "Cook"),
		metav1.CreateOptions{})
	c.refused(err, apierrors.IsNotFound, `namespaces "absent" not found`)
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	list, err := c.dynamic.Resource(gvr("vessels")).List(c.ctx, metav1.ListOptions{
		FieldSelector: "metadata.namespace=" + c.namespace,
	})
	if err != nil || len(list.Items) != 1 {
		c.Errorf("%d in all namespaces: %v", len(list.Items), err)
	}
}

func testDiscovery(c *client) {
	d, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		c.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion(Group + "/v1")
	if err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "harbours harbours/scale harbours/status vessels vessels/hail vessels/status" {
		c.Errorf("the resources are %s", got)
	}
	groups, err := d.ServerGroups()
	if err != nil || !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == Group }) {
		c.Errorf("the group is not listed: %v", err)
	}
}

func testOpenAPI(c *client) {
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	k, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		c.Fatal(err)
	}
	// kube-apiserver updates the document asynchronously
	err = wait.PollUntilContextCancel(c.ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return k.RESTClient().Get().AbsPath("/openapi/v3/apis/"+Group+"/v1").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		c.Fatal(err)
	}
	c.get(&document, "application/json", "/openapi/v3/apis/"+Group+"/v1")
	text, _ := json.Marshal(document.Components.Schemas["com.example.extension.v1.Vessel"])
	if !contains(string(text), "Who commands it.") {
		c.Errorf("the schema of vessels is %s", text)
	}
}

func testPath(c *client) {
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	c.made(c.vessels().Create(c.ctx, vessel("b", "Silent"), metav1.CreateOptions{}))
	k, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		c.Fatal(err)
	}
	path := "/apis/" + Group + "/v1/namespaces/" + c.namespace + "/vessels/"
	if got, err := k.RESTClient().Post().AbsPath(path + "a/hail").DoRaw(c.ctx); string(got) != "captain Cook of the a" {
		c.Errorf("%q %v", got, err)
	}
	_, err = k.RESTClient().Post().AbsPath(path + "b/hail").DoRaw(c.ctx)
	c.refused(err, apierrors.IsBadRequest)
	_, err = k.RESTClient().Post().AbsPath(path + "c/hail").DoRaw(c.ctx)
	c.refused(err, apierrors.IsNotFound)
	_, err = k.RESTClient().Get().AbsPath(path + "a/hail").DoRaw(c.ctx)
	c.refused(err, apierrors.IsMethodNotSupported)
}

// testAccess checks that users have the permissions of their roles in the server in front.
func testAccess(c *client) {
	c.made(c.vessels().Create(c.ctx, vessel("a", "Cook"), metav1.CreateOptions{}))
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "jim"}
	jim, err := dynamic.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	vessels := jim.Resource(gvr("vessels")).Namespace(c.namespace)
	_, err = vessels.Get(c.ctx, "a", metav1.GetOptions{})
	c.refused(err, apierrors.IsForbidden, `User "jim" cannot get resource "vessels" in API group "extension.example.com"`)
	for resource, obj := range map[string]map[string]any{
		"roles": {"kind": "Role", "rules": []any{map[string]any{
			"apiGroups": []any{Group}, "resources": []any{"vessels"}, "verbs": []any{"get"},
		}}},
		"rolebindings": {
			"kind":     "RoleBinding",
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jim"}},
		},
	} {
		obj["apiVersion"], obj["metadata"] = "rbac.authorization.k8s.io/v1", map[string]any{"name": "read"}
		c.made(c.dynamic.Resource(
			schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}).
			Namespace(c.namespace).Create(c.ctx, &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}))
	}
	c.made(vessels.Get(c.ctx, "a", metav1.GetOptions{}))
}
