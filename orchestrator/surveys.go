package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// KeptSurvey is a target as it was when it was added, or first probed.
type KeptSurvey struct {
	Target  string          `json:"target"`
	Address string          `json:"address"` // AddressOf the target then
	Version string          `json:"version"` // of kernsweep
	Survey  *targets.Survey `json:"survey"`
}

func surveyFile(runs, target string) string {
	return filepath.Join(runs, ".surveys", url.PathEscape(target)+".json")
}

// Save writes k below the folder of the run directories, over an earlier one.
func (k *KeptSurvey) Save(runs string) error {
	path := surveyFile(runs, k.Target)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("the survey of %s is not kept: %w", k.Target, err)
	}
	raw, err := json.MarshalIndent(k, "", "  ")
	if err == nil {
		err = renameio.WriteFile(path, append(raw, '\n'), 0o666, renameio.WithTempDir(filepath.Dir(path)))
	}
	if err != nil {
		return fmt.Errorf("the survey of %s is not kept: %w", k.Target, err)
	}
	return nil
}

// LoadSurvey reads the survey kept of a target. Without one the error is
// fs.ErrNotExist.
func LoadSurvey(runs, target string) (*KeptSurvey, error) {
	raw, err := os.ReadFile(surveyFile(runs, target))
	if err != nil {
		return nil, err
	}
	k := &KeptSurvey{Survey: new(targets.Survey)}
	err = json.Unmarshal(raw, k)
	if err == nil && k.Survey == nil {
		err = errors.New("it has no survey")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; kernsweep target probe %s --keep makes it anew", surveyFile(runs, target), err, target)
	}
	return k, nil
}

// SameDevice finds the target of lab that leads to where s leads, by name and by
// address, through the same jump hosts; nil when there is none. where is the
// address that they share. Names are looked up, and nothing else is contacted.
func SameDevice(ctx context.Context, lab *config.Lab, s targets.SSH, resolve func(context.Context, targets.SSH) ([]string, error)) (t *config.Target, where string) {
	a := addresses{resolve: resolve, say: func(string) {}}
	own := a.keys(ctx, &config.Target{Target: targets.Target{SSH: s}})
	for _, t := range lab.Targets {
		if t.SSH.Host == "" || targets.TraitsOf(t.Boot).Local {
			continue
		}
		for _, k := range a.keys(ctx, t) {
			if slices.Contains(own, k) {
				return t, strings.TrimPrefix(k, targetLock(""))
			}
		}
	}
	return nil, ""
}
