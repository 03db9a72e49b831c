package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var migrations = schema.GroupVersionResource{
	Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations",
}

// twoVersions is a definition of CronTab in v1 and v2.
func twoVersions(storage string) *unstructured.Unstructured {
	def := controltest.Definition("crontabs", "CronTab", "Namespaced")
	one := def.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	two := map[string]any{"name": "v2", "served": true, "schema": one["schema"]}
	one["storage"], two["storage"] = storage == "v1", storage == "v2"
	def.Object["spec"].(map[string]any)["versions"] = []any{one, two}
	return def
}

// store makes version the storage version of CronTab.
func (c *cluster) store(version string) {
	c.Helper()
	want := twoVersions(version).Object["spec"].(map[string]any)["versions"]
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": want}})
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.In(controltest.Definitions, "").Patch(c.Context(), "crontabs.stable.example.com",
		types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
}

func migration(name, group, resource string) *unstructured.Unstructured {
	m := controltest.Object("storagemigration.k8s.io/v1", "StorageVersionMigration", "", name)
	m.Object["spec"] = map[string]any{"resource": map[string]any{"group": group, "resource": resource}}
	return m
}

// condition returns status, reason and message of a condition.
func condition(obj *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, v := range conditions {
		if c := v.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%v %v %v", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

func (c *cluster) untilMigrated(name string) {
	c.Helper()
	c.When(migrations, "", name+" completed", func(all map[string]*unstructured.Unstructured) bool {
		m := all[name]
		return m != nil && condition(m, "Succeeded") == "True StorageVersionMigrationSucceeded Migration completed" &&
			condition(m, "Running") == "False MigrationCompleted Migration completed"
	})
}

func (c *cluster) definition() *unstructured.Unstructured {
	c.Helper()
	def, err := c.In(controltest.Definitions, "").Get(c.Context(), "crontabs.stable.example.com", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return def
}

func (c *cluster) fill(n int) {
	c.Helper()
	for i := range n {
		c.Create(controltest.Crontabs,
			controltest.Object("stable.example.com/v1", "CronTab", "default", fmt.Sprintf("tab-%d", i)))
	}
}

func TestMigration(t *testing.T) {
	c := start(t)
	c.Create(controltest.Definitions, twoVersions("v1"))
	c.fill(600)
	c.store("v2")
	v2 := schema.GroupVersionResource{
		Group: controltest.Crontabs.Group, Version: "v2", Resource: controltest.Crontabs.Resource,
	}
	before, err := c.In(v2, "default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Create(migrations, migration("one", "stable.example.com", "crontabs"))
	c.Create(migrations, migration("two", "stable.example.com", "crontabs"))
	c.untilMigrated("one")
	c.untilMigrated("two")
	def := c.definition()
	stored, _, _ := unstructured.NestedStringSlice(def.Object, "status", "storedVersions")
	if !slices.Equal(stored, []string{"v2"}) ||
		condition(def,
			"StorageMigrating") != "False MigrationSucceeded The migration has succeeded and the stored versions have been updated" {
		t.Errorf("the definition says %v, %q", stored, condition(def, "StorageMigrating"))
	}
	after, err := c.In(v2, "default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range after.Items {
		now, was := after.Items[i].DeepCopy(), before.Items[i]
		if now.GetResourceVersion() == was.GetResourceVersion() {
			t.Fatalf("%s was not written", now.GetName())
		}
		now.SetResourceVersion(was.GetResourceVersion())
		if fmt.Sprint(now.Object) != fmt.Sprint(was.Object) {
			t.Fatalf("%v became %v", was.Object, now.Object)
		}
	}
	// Already migrated objects are left alone.
	c.Create(migrations, migration("three", "stable.example.com", "crontabs"))
	c.untilMigrated("three")
	again, err := c.In(v2, "default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range again.Items {
		if again.Items[i].GetResourceVersion() != after.Items[i].GetResourceVersion() {
			t.Fatalf("%s was written once more", again.Items[i].GetName())
		}
	}
}

func TestMigrationOfBuiltInKinds(t *testing.T) {
	c := start(t)
	c.Create(controltest.ConfigMaps, controltest.ConfigMap("a"))
	c.Create(migrations, migration("maps", "", "configmaps"))
	c.untilMigrated("maps")
}

func TestMigrationByItself(t *testing.T) {
	client, err := dynamic.NewForConfig(testserver.Start(t,
		func(c *bowsprit.Config) { c.Versions.MigrateStorage = true }).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{&controltest.Cluster{T: t, Client: client}}
	c.Create(controltest.Definitions, twoVersions("v1"))
	c.fill(3)
	c.store("v2")
	c.untilMigrated("crontabs.stable.example.com-2")
	if stored, _, _ := unstructured.NestedStringSlice(c.definition().Object, "status",
		"storedVersions"); !slices.Equal(stored, []string{"v2"}) {
		t.Errorf("the definition says %v", stored)
	}
}

// TestMigrationWaitsForConversion shows that a migration outlives a broken webhook and a restart of the server.
func TestMigrationWaitsForConversion(t *testing.T) {
	dir := t.TempDir()
	var broken atomic.Bool
	broken.Store(true)
	configure := func(c *bowsprit.Config) {
		c.DataDir = filepath.Join(dir, "data")
		c.Versions.Conversions = map[schema.GroupKind]bowsprit.Conversion{
			{Group: "stable.example.com", Kind: "CronTab"}: func(_ context.Context, objs []map[string]any,
				apiVersion string) ([]map[string]any, error) {
				if broken.Load() {
					return nil, errors.New("not today")
				}
				var out []map[string]any
				for _, obj := range objs {
					one := (&unstructured.Unstructured{Object: obj}).DeepCopy().Object
					one["apiVersion"] = apiVersion
					out = append(out, one)
				}
				return out, nil
			},
		}
	}
	server := testserver.Start(t, configure)
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{&controltest.Cluster{T: t, Client: client}}
	c.Create(controltest.Definitions, twoVersions("v1"))
	c.fill(300)
	c.store("v2")
	c.Create(migrations, migration("one", "stable.example.com", "crontabs"))
	c.When(migrations, "", "trouble", func(all map[string]*unstructured.Unstructured) bool {
		return strings.Contains(condition(all["one"], "Running"),
			"transient error: conversion function for stable.example.com/v1, Kind=CronTab failed: not today")
	})
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	broken.Store(false)
	if c.Client, err = dynamic.NewForConfig(testserver.Start(t, configure).RESTConfig()); err != nil {
		t.Fatal(err)
	}
	c.untilMigrated("one")
}

func TestMigrationRules(t *testing.T) {
	c := start(t)
	for want, bad := range map[string]*unstructured.Unstructured{
		`spec.resource.resource: Required value: resource is required to be set`:  migration("a", "", ""),
		`spec.resource.group: Invalid value: "A": a lowercase RFC 1123 subdomain`: migration("a", "A", "b"),
	} {
		if _, err := c.In(migrations, "").Create(t.Context(), bad, metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	c.Create(migrations, migration("a", "", "configmaps"))
	_, err := c.In(migrations, "").Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"spec":{"resource":{"resource":"secrets"}}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("got %v", err)
	}
}
