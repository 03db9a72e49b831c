package batch

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func cronJobKind() rule.Kind {
	return rule.Of[batchv1.CronJob](rule.Kind{
		Group: batchV1, Kind: "CronJob", DropGated: pod.DropGatedAt("spec", "jobTemplate", "spec", "template", "spec"),
		Plural: "cronjobs", Short: []string{"cj"}, Categories: rule.CategoryAll, Status: true, Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(cronJobCells), Default: defaultCronJob, UnconditionalUpdate: true,
		},
		Warn: warnCronJob,
	})
}

func cronJobCells(c *batchv1.CronJob, e catalog.Env) []any {
	last := rule.None
	if c.Status.LastScheduleTime != nil {
		last = rule.Ago(*c.Status.LastScheduleTime, e)
	}
	suspend := rule.Unset
	if c.Spec.Suspend != nil {
		suspend = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
	}
	job := c.Spec.JobTemplate.Spec
	names, images := pod.ContainerNames(job.Template.Spec.Containers)
	return []any{
		c.Name, c.Spec.Schedule, rule.Deref(c.Spec.TimeZone, rule.None), suspend, int64(len(c.Status.Active)), last,
		rule.Ago(c.CreationTimestamp, e),
		names, images, metav1.FormatLabelSelector(job.Selector),
	}
}

func defaultCronJob(obj object.Object) {
	spec, _ := obj["spec"].(map[string]any)
	if template, ok := spec["jobTemplate"].(map[string]any); ok {
		pod.DefaultTemplate(template)
	}
}

func cronJobName(val *rule.Validation, _ rule.Value) {
	if name := object.String(object.Map(val.Obj, "metadata"), "name"); len(name) > 52 { // a job's name has 11 more
		val.Invalid(field.NewPath("metadata", "name"), name, "must be no more than 52 characters")
	}
}

func schedule(val *rule.Validation, p rule.Value) {
	s, path := object.String(p.Object(), "schedule"), p.Path.Child("schedule")
	if s == "" {
		return
	}
	if err := parseSchedule(s); err != nil {
		val.Invalid(path, s, err.Error())
	}
	had := val.Old != nil && strings.Contains(object.String(object.Map(val.Old, "spec"), "schedule"), "TZ")
	switch zoned := strings.Contains(s, "TZ"); {
	case zoned && !had:
		val.Invalid(path, s, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	case zoned && p.Object()["timeZone"] != nil:
		val.Invalid(path, s, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	}
}

// parseSchedule parses a schedule; the library panics on some invalid ones.
func parseSchedule(s string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	_, err = cron.ParseStandard(s)
	return err
}

// zonePart is a part of the name of a time zone.
var zonePart = regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`)

func timeZone(val *rule.Validation, p rule.Value) {
	zone, ok := p.New.(string)
	if !ok || val.Old != nil && p.Old == p.New {
		return
	}
	if zone == "" {
		val.Invalid(p.Path, zone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			val.Invalid(p.Path, zone, "unknown time zone "+zone)
			return
		}
	}
	if strings.EqualFold(zone, "Local") {
		val.Invalid(p.Path, zone,
			"timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		val.Invalid(p.Path, zone, err.Error())
	}
}

// jobTemplate: the jobs of a CronJob get their selectors from the server.
func jobTemplate(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	if s := rule.LabelSelector(spec["selector"]); s != nil {
		val.Invalid(p.Path.Child("selector"), s, "`selector` will be auto-generated")
	}
	if object.True(spec, "manualSelector") {
		val.Unsupported(p.Path.Child("manualSelector"), true, "nil", "false")
	}
}

// cronJobFunctions are the functions that cron_job.txt names.
func cronJobFunctions() rule.Functions {
	return rule.Functions{
		"cronJobName": cronJobName,
		"jobTemplate": jobTemplate,
		"schedule":    schedule,
		"timeZone":    timeZone,
	}
}
