package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// migrations runs StorageVersionMigration objects: it stores every object of a resource again, so that all are in the
// current storage version, and records that in the definition. It is Kubernetes' storage-version-migrator-controller
// with its two helpers, without waiting for informers.
//
// A migration can restart because it has no position: objects written since it began (status.resourceVersion) need no
// work, and checking them is cheap.
type migrations struct {
	Config
}

var migrationsResource = catalog.GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}

const (
	migrator         = "storage-version-migrator-controller"
	migrationsPrefix = "storageversionmigrations"
	// migrationWindow is the number of objects to convert and write in one step.
	migrationWindow = 250
	// progressEvery is the interval of progress reports.
	progressEvery = 5 * time.Second
	// migrators is the number of concurrent migrations, as in Kubernetes.
	migrators = 5
	// unknownFor is how long a migration waits for its resource to appear.
	unknownFor = time.Minute
	// definitionKey begins the key of a definition that may need a migration.
	definitionKey = "definition:"
)

func (m *migrations) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case migrationsPrefix:
		// The end of one migration may allow the start of another.
		ev.Collection.Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			need(e.Name)
			return true
		})
	case DefinitionsPrefix:
		if m.MigrateStorage && ev.Type != watchcache.Deleted {
			need(definitionKey + ev.Entry.Name)
		}
	}
}

func (m *migrations) Reconcile(ctx context.Context, key string) error {
	if definition, ok := strings.CutPrefix(key, definitionKey); ok {
		return m.startFor(ctx, definition)
	}
	all, err := m.all()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(one *migrationv1beta1.StorageVersionMigration) bool { return one.Name == key })
	if i < 0 {
		return nil
	}
	one := all[i]
	switch next(one, all) {
	case begin:
		return m.begin(ctx, one)
	case proceed:
		return m.proceed(ctx, one)
	case conclude:
		return m.conclude(ctx, one)
	}
	return nil
}

// all returns the migrations as the view has them.
func (m *migrations) all() (all []*migrationv1beta1.StorageVersionMigration, err error) {
	m.View.Collection(migrationsPrefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		one := &migrationv1beta1.StorageVersionMigration{}
		if err = json.Unmarshal(e.JSON(), one); err != nil {
			err = fmt.Errorf("migration %s: %w", e.Name, err)
		}
		all = append(all, one)
		return err == nil
	})
	return all, err
}

// begin records that a migration is running, and the revision from which on objects need no work.
func (m *migrations) begin(ctx context.Context, one *migrationv1beta1.StorageVersionMigration) error {
	if err := m.define(ctx, one.Spec.Resource, func(def *apiextensionsv1.CustomResourceDefinition) {
		markMigrating(def, one.Name, m.Now())
	}); err != nil {
		return err
	}
	revision, err := m.View.Fresh(ctx)
	if err != nil {
		return err
	}
	m.Log.Info("storage migration begins", "migration", one.Name, "resource", one.Spec.Resource.Resource, "group",
		one.Spec.Resource.Group)
	return m.update(ctx, one.Name, func(one *migrationv1beta1.StorageVersionMigration) {
		setCondition(one, underWay(running(0, 0, nil)), m.Now())
		if one.Status.ResourceVersion == "" {
			one.Status.ResourceVersion = strconv.FormatInt(revision, 10)
		}
	})
}

// errGone stops a migration with an object that was deleted or ended by another writer.
var errGone = errors.New("the migration is gone")

// proceed rewrites the objects and reports the result. After a temporary failure the migration reports the problem and
// retries.
func (m *migrations) proceed(ctx context.Context, one *migrationv1beta1.StorageVersionMigration) error {
	gr := catalog.GroupResource{Group: one.Spec.Resource.Group, Resource: one.Spec.Resource.Resource}
	res := m.Catalog.Snapshot().Resource(gr.Group, gr.Resource)
	if res == nil {
		if m.Now().Before(one.CreationTimestamp.Add(unknownFor)) {
			return fmt.Errorf("resource %s does not exist yet", gr)
		}
		return m.fail(ctx, one.Name, "resource does not exist in discovery")
	}
	for _, verb := range []string{"update", "patch", "list"} {
		if !res.Answers(verb) {
			return m.fail(ctx, one.Name,
				fmt.Sprintf("resource %q does not support discovery operations: [update patch list]", gr.Resource))
		}
	}
	before, err := strconv.ParseInt(one.Status.ResourceVersion, 10, 64)
	if err != nil {
		return m.fail(ctx, one.Name, fmt.Sprintf("latest resourceVersion for %s is not valid: %v", gr.Resource, err))
	}
	err = m.rewrite(ctx, one, gr, before)
	if errors.Is(err, errGone) || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		_ = m.report(ctx, one.Name, running(0, 0, err))
		return err
	}
	return m.update(ctx, one.Name, func(one *migrationv1beta1.StorageVersionMigration) {
		setCondition(one, metav1.Condition{
			Type: string(migrationv1beta1.MigrationSucceeded), Status: metav1.ConditionTrue,
			Reason: "StorageVersionMigrationSucceeded", Message: "Migration completed",
		}, m.Now())
	})
}

// rewrite stores anew all objects of a resource that were last written up to revision before.
func (m *migrations) rewrite(
	ctx context.Context, one *migrationv1beta1.StorageVersionMigration, gr catalog.GroupResource, before int64,
) error {
	if err := m.View.WaitFor(ctx, before); err != nil {
		return err
	}
	call, err := m.Verbs.Call(gr, "", "", ControllerUser(migrator))
	if err != nil {
		return err
	}
	snapshot := m.View.Collection(call.Resource.Prefix).Snapshot()
	done, reported := 0, m.Now()
	window := make([]*watchcache.Entry, 0, migrationWindow)
	flush := func() error {
		// The definition may have changed, and deleting the migration stops it.
		if m.View.Collection(migrationsPrefix).Snapshot().Get("", one.Name) == nil {
			return errGone
		}
		call, err := m.Verbs.Call(gr, "", "", ControllerUser(migrator))
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := m.Verbs.Rewrite(ctx, call, window); err != nil {
			return err
		}
		select { // leave the CPUs and the log to others for the same time
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			return ctx.Err()
		}
		done += len(window)
		window = window[:0]
		if now := m.Now(); now.Sub(reported) >= progressEvery {
			reported = now
			return m.report(ctx, one.Name, running(done, snapshot.Len(), nil))
		}
		return nil
	}
	snapshot.Scan("", "", func(e *watchcache.Entry) bool {
		if e.Revision > before {
			done++
			return true
		}
		if window = append(window, e); len(window) == migrationWindow {
			err = flush()
		}
		return err == nil
	})
	if err == nil && len(window) > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	return m.remaining(ctx, gr, before)
}

// remaining migrates objects in the version of their latest write if they were written during the migration: a deletion
// that only sets a mark writes like that (verb.Call.Metadata).
func (m *migrations) remaining(ctx context.Context, gr catalog.GroupResource, before int64) error {
	if _, err := m.View.Fresh(ctx); err != nil {
		return err
	}
	call, err := m.Verbs.Call(gr, "", "", ControllerUser(migrator))
	if err != nil {
		return err
	}
	if !call.Resource.Custom() {
		return nil
	}
	storage := call.Resource.APIVersion(call.Resource.Storage)
	var left []*watchcache.Entry
	m.View.Collection(call.Resource.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if e.APIVersion != storage {
			left = append(left, e)
		}
		return true
	})
	for window := range slices.Chunk(left, migrationWindow) {
		if _, err := m.Verbs.Rewrite(ctx, call, window); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return m.remaining(ctx, gr, before)
	}
	return nil
}

// conclude notes the end of a migration in the definition, then in the migration itself.
func (m *migrations) conclude(ctx context.Context, one *migrationv1beta1.StorageVersionMigration) error {
	if err := m.define(ctx, one.Spec.Resource, func(def *apiextensionsv1.CustomResourceDefinition) {
		markMigrated(def, succeeded(one), m.Now())
	}); err != nil {
		return err
	}
	m.Log.Info("storage migration ends: all objects are stored in the storage version", "migration", one.Name,
		"resource", one.Spec.Resource.Resource, "group", one.Spec.Resource.Group)
	return m.update(ctx, one.Name, func(one *migrationv1beta1.StorageVersionMigration) {
		setCondition(one, metav1.Condition{
			Type: string(migrationv1beta1.MigrationRunning), Status: metav1.ConditionFalse,
			Reason: "MigrationCompleted", Message: "Migration completed",
		}, m.Now())
	})
}

func (m *migrations) fail(ctx context.Context, name, message string) error {
	m.Log.Warn("storage migration failed; create another one when the cause is removed", "migration", name,
		"error", message)
	return m.update(ctx, name, func(one *migrationv1beta1.StorageVersionMigration) {
		setCondition(one, metav1.Condition{
			Type: string(migrationv1beta1.MigrationFailed), Status: metav1.ConditionTrue,
			Reason: "StorageVersionMigrationFailed", Message: message,
		}, m.Now())
	})
}

func (m *migrations) report(ctx context.Context, name, message string) error {
	return m.update(ctx, name, func(one *migrationv1beta1.StorageVersionMigration) {
		setCondition(one, underWay(message), m.Now())
	})
}

// update changes a migration's status; a deleted migration needs no change.
func (m *migrations) update(
	ctx context.Context, name string, change func(*migrationv1beta1.StorageVersionMigration),
) error {
	return updateStatus(ctx, m.Config, statusOf{migrationsResource, name, migrator}, change)
}

// define changes the status of a resource's definition, if it has one.
func (m *migrations) define(
	ctx context.Context, of metav1.GroupResource, change func(*apiextensionsv1.CustomResourceDefinition),
) error {
	return updateStatus(ctx, m.Config,
		statusOf{definitionsResource, of.Resource + "." + of.Group, "migration-runner-controller"}, change)
}

// statusOf is the status of a cluster-scoped object, and the controller that changes it.
type statusOf struct {
	resource         catalog.GroupResource
	name, controller string
}

// updateStatus changes a status as its Go type, acting as the controller. An object that does not exist needs no
// change.
func updateStatus[T any](ctx context.Context, c Config, of statusOf, change func(*T)) error {
	call, err := c.Verbs.Call(of.resource, "", of.name, ControllerUser(of.controller))
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = c.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: of.controller},
		func(obj object.Object) (object.Object, error) {
			var typed T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &typed); err != nil {
				return nil, err
			}
			change(&typed)
			changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
			if err != nil {
				return nil, err
			}
			obj["status"] = changed["status"]
			return obj, nil
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// startFor starts the migration that a definition requires, unless one exists.
func (m *migrations) startFor(ctx context.Context, definition string) error {
	entry := m.View.Collection(DefinitionsPrefix).Snapshot().Get("", definition)
	if entry == nil {
		return nil
	}
	def, err := crd.DecodeWithoutSchemas(entry.JSON())
	if err != nil {
		return err
	}
	wanted := automatic(def)
	if wanted == nil || m.View.Collection(migrationsPrefix).Snapshot().Get("", wanted.Name) != nil {
		return nil
	}
	call, err := m.Verbs.Call(migrationsResource, "", "", ControllerUser(migrator))
	if err != nil {
		return err
	}
	obj, err := m.Verbs.New(call, object.Object{
		"metadata": object.Object{"name": wanted.Name},
		"spec": object.Object{
			"resource": object.Object{"group": wanted.Spec.Resource.Group, "resource": wanted.Spec.Resource.Resource},
		},
	})
	if err != nil {
		return err
	}
	if _, err = m.Verbs.Create(ctx, call, obj,
		metav1.CreateOptions{FieldManager: migrator}); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
