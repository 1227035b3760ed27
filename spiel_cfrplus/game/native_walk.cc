// The walk through a game in C++. It makes the columns of a `WalkRecord` (see walk.py) from the states of the OpenSpiel library
// that is already loaded into the process. native_library.py compiles this file; native_walk.py calls the functions at its end.
//
// Several threads walk one tree. A depth, the *cut*, is chosen near the root. The histories at the cut are *units*, numbered in
// preorder, and consecutive units form a *block*. A block also owns the histories above the cut that come after its first unit
// and before the next block, so the blocks, one after another, are the preorder of the whole tree. Every thread walks the few
// histories above the cut, and claims blocks in ascending order; it steps over the units of blocks that others have claimed
// without making a state. So a thread keeps one state for each ply of its current path, as the walk in Python does.
//
// A thread numbers infostates in the order of its own visits. As its blocks ascend, an infostate is first visited, in the order
// of the whole tree, in the first block in which any thread numbered it. `Number` therefore passes through the blocks in order.
//
// Whatever the walk in Python would refuse is refused here without details: Python then repeats the walk and raises its error.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "open_spiel/spiel.h"

namespace spiel_cfrplus {
namespace {

using open_spiel::Action;
using open_spiel::State;
using Actions = std::vector<Action>;
using StatePointer = std::unique_ptr<State>;

constexpr int kBlocksPerThread = 64;   // balances the load, and bounds the memory of a block that is being copied
constexpr int kMaxCut = 30;            // plies
constexpr int kHistoriesPerStep = 1024;  // between two looks at what the threads share
constexpr size_t kArenaBytes = 1 << 20;
constexpr uint32_t kNone = UINT32_MAX;
constexpr double kHalfTolerance = 0.5e-6;  // of chance.py; Python decides about sums that are further off

enum Outcome : int { kComplete = 0, kStopped, kTooLarge, kRefused, kOutOfMemory };

struct Stop {};
struct Refusal {
  const char* reason;
};

template <typename T>
void Append(std::vector<T>* column, const std::vector<T>& values) {
  column->insert(column->end(), values.begin(), values.end());
}

// A copy of the column; its own memory is freed.
template <typename T>
T* Drain(std::vector<T>* column, T* target) {
  target = std::copy(column->begin(), column->end(), target);
  std::vector<T>().swap(*column);
  return target;
}

bool HasDuplicates(Actions actions) {
  if (std::is_sorted(actions.begin(), actions.end(), std::less_equal<Action>())) return false;
  std::sort(actions.begin(), actions.end());
  return std::adjacent_find(actions.begin(), actions.end()) != actions.end();
}

// Infostates and their numbers, in a hash table with linear probing. Equal hashes are not trusted: strings are compared.
class Infostates {
 public:
  struct Entry {
    size_t hash;
    std::string_view key;
    const Actions* actions;
    int player;
  };

  static size_t Hash(int player, std::string_view key) { return std::hash<std::string_view>()(key) * 31 + player; }

  size_t size() const { return entries_.size(); }
  const Entry& operator[](size_t number) const { return entries_[number]; }

  uint32_t Find(size_t hash, int player, std::string_view key) const {
    for (size_t slot = hash & Mask();; slot = (slot + 1) & Mask()) {
      const uint32_t number = slots_[slot];
      if (number == kNone) return kNone;
      const Entry& entry = entries_[number];
      if (entry.hash == hash && entry.player == player && entry.key == key) return number;
    }
  }

  // Adds an infostate that is not there. The entry's key and actions must live as long as this object.
  uint32_t Add(const Entry& entry) {
    if (2 * entries_.size() >= slots_.size()) Grow();
    entries_.push_back(entry);
    Place(static_cast<uint32_t>(entries_.size() - 1));
    return static_cast<uint32_t>(entries_.size() - 1);
  }

 private:
  size_t Mask() const { return slots_.size() - 1; }

  void Grow() {
    std::vector<uint32_t>(2 * slots_.size(), kNone).swap(slots_);
    for (uint32_t number = 0; number < entries_.size(); ++number) Place(number);
  }

  void Place(uint32_t number) {
    size_t slot = entries_[number].hash & Mask();
    while (slots_[slot] != kNone) slot = (slot + 1) & Mask();
    slots_[slot] = number;
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(1024, kNone);
};

// The memory of strings; they do not move.
class Arena {
 public:
  std::string_view Keep(const std::string& text) {
    if (text.size() > left_) {
      left_ = std::max(kArenaBytes, text.size());
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
      free_ = chunks_.back().get();
    }
    std::memcpy(free_, text.data(), text.size());
    const std::string_view kept(free_, text.size());
    free_ += text.size();
    left_ -= text.size();
    return kept;
  }

 private:
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t left_ = 0;
};

// The histories of a block, with the infostate numbers of the thread that walked it.
struct Block {
  std::vector<int32_t> nodes, num_outcomes;
  std::vector<int64_t> outcomes;
  std::vector<double> probabilities, returns;
  size_t thread = 0, first_new = 0, end_new = 0;  // the thread, and the infostates that it first visited in this block

  void Shrink() {
    nodes.shrink_to_fit();
    returns.shrink_to_fit();
    outcomes.shrink_to_fit();
    probabilities.shrink_to_fit();
  }
};

struct Roots {
  std::vector<Actions> histories;
  std::vector<double> probabilities;
};

// What the threads share.
struct Shared {
  std::string game;
  Roots roots;
  int64_t max_histories;
  int cut = 0;
  int64_t units_per_block = 1;
  std::vector<Block> blocks;
  std::atomic<int64_t> next_block{0}, counted{0}, infostates{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  Outcome outcome = kComplete;
  std::string reason;

  void Fail(Outcome failure, const std::string& why) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (outcome == kComplete) {
      outcome = failure;
      reason = why;
    }
    stop = true;
  }
};

// A history whose children are being visited. Without a state it is the chance move among several roots.
struct Open {
  StatePointer state;
  int ply = 0;
  Actions actions;
  size_t next = 0;
};

// The tree as one thread sees it: its own copy of the game, because the states of one game share a reference count.
class Tree {
 public:
  Tree(const std::string& game, const Roots& roots) : roots_(roots), game_(open_spiel::LoadGame(game)) {}

  int NumPlayers() const { return game_->NumPlayers(); }

  Open Root() const {
    Open root;
    if (roots_.histories.size() == 1) {
      root.state = Replay(0);
    } else {
      for (size_t number = 0; number < roots_.histories.size(); ++number) root.actions.push_back(number);
    }
    return root;
  }

  StatePointer Child(const Open& parent, Action action) const {
    return parent.state ? parent.state->Child(action) : Replay(action);
  }

  // The parent's state is not needed after its last child, which reuses it.
  StatePointer LastChild(Open* parent, Action action) const {
    if (!parent->state) return Replay(action);
    parent->state->ApplyAction(action);
    return std::move(parent->state);
  }

 private:
  StatePointer Replay(size_t root) const {
    StatePointer state = game_->NewInitialState();
    for (Action action : roots_.histories[root]) state->ApplyAction(action);
    return state;
  }

  const Roots& roots_;
  std::shared_ptr<const open_spiel::Game> game_;
};

Actions ActionsOf(const State& state) {
  const int player = state.CurrentPlayer();
  if (player == open_spiel::kChancePlayerId) return state.LegalChanceOutcomes();
  return player >= 0 ? state.LegalActions() : Actions();
}

// Chooses the first ply with enough histories, and divides these into blocks.
void Divide(int threads, Shared* shared) {
  const Tree tree(shared->game, shared->roots);
  std::vector<Open> level;
  level.push_back(tree.Root());
  if (level[0].state) level[0].actions = ActionsOf(*level[0].state);
  const int64_t wanted = int64_t{kBlocksPerThread} * threads;
  int64_t units = 1, below = level[0].actions.size();
  while (units < wanted && below > 0 && shared->cut < kMaxCut) {
    ++shared->cut;
    units = below;
    if (units >= wanted) break;  // the states of the last ply are not needed, and may be many
    std::vector<Open> next;
    below = 0;
    for (const Open& parent : level) {
      for (Action action : parent.actions) {
        Open child{tree.Child(parent, action), shared->cut};
        child.actions = ActionsOf(*child.state);
        below += child.actions.size();
        next.push_back(std::move(child));
      }
    }
    level = std::move(next);
  }
  shared->units_per_block = (units + wanted - 1) / wanted;
  shared->blocks.resize((units + shared->units_per_block - 1) / shared->units_per_block);
}

// The walk of one thread.
class Walker {
 public:
  Walker(size_t thread, Shared* shared) : thread_(thread), shared_(*shared) {}

  const Infostates& infostates() const { return infostates_; }

  void Run() {
    const Tree tree(shared_.game, shared_.roots);
    num_players_ = tree.NumPlayers();
    Claim();
    if (shared_.cut == 0) ++unit_;  // the root is the only unit
    std::vector<Open> path;
    path.push_back(tree.Root());
    if (!path[0].state) {
      VisitRoots(path[0].actions);
    } else if (path[0].actions = Visit(*path[0].state); path[0].actions.empty()) {
      path.pop_back();
    }
    while (!path.empty() && block_ < Blocks()) {
      Open& parent = path.back();
      const Action action = parent.actions[parent.next++];
      const bool is_last = parent.next == parent.actions.size();
      Open child{nullptr, parent.ply + 1};
      if (child.ply != shared_.cut || Enter()) {
        child.state = is_last ? tree.LastChild(&parent, action) : tree.Child(parent, action);
        child.actions = Visit(*child.state);
      }
      if (is_last) path.pop_back();
      if (!child.actions.empty()) path.push_back(std::move(child));
    }
    Close();
    Report();
  }

 private:
  int64_t Blocks() const { return shared_.blocks.size(); }

  // The block that this thread records next; the histories before its first unit are recorded by other threads.
  void Claim() {
    block_ = shared_.next_block++;
    columns_ = block_ == 0 ? &shared_.blocks[0] : nullptr;
    if (columns_) columns_->thread = thread_;
  }

  void Close() {
    if (!columns_) return;
    columns_->end_new = infostates_.size();
    columns_->Shrink();
    columns_ = nullptr;
  }

  // Whether this thread records the next unit.
  bool Enter() {
    const int64_t block = unit_++ / shared_.units_per_block;
    if (block > block_) {
      Close();
      Claim();
    }
    if (block == block_ && !columns_) {
      columns_ = &shared_.blocks[block];
      columns_->thread = thread_;
      columns_->first_new = infostates_.size();
    }
    return columns_ != nullptr;
  }

  void Report() {
    shared_.infostates += infostates_.size() - reported_infostates_;
    reported_infostates_ = infostates_.size();
    if ((shared_.counted += std::exchange(unreported_, 0)) > shared_.max_histories) shared_.Fail(kTooLarge, "");
    if (shared_.stop) throw Stop();
  }

  void Record(int32_t node) {
    columns_->nodes.push_back(node);
    if (++unreported_ == kHistoriesPerStep) Report();
  }

  // Records a history and returns its actions; the histories of other threads are not recorded.
  Actions Visit(const State& state) {
    if (!columns_) return ActionsOf(state);
    const int player = state.CurrentPlayer();
    if (player >= 0 && player < num_players_) return VisitDecision(state, player);
    if (player == open_spiel::kChancePlayerId) return VisitChance(state.ChanceOutcomes());
    if (player != open_spiel::kTerminalPlayerId) throw Refusal{"a player that does not exist is to move"};
    const std::vector<double> returns = state.Returns();
    if (returns.size() != static_cast<size_t>(num_players_)) throw Refusal{"returns are not one number for each player"};
    Append(&columns_->returns, returns);
    Record(open_spiel::kTerminalPlayerId);
    return {};
  }

  void VisitRoots(const Actions& numbers) {
    if (!columns_) return;
    columns_->num_outcomes.push_back(numbers.size());
    Append(&columns_->outcomes, numbers);
    Append(&columns_->probabilities, shared_.roots.probabilities);
    Record(open_spiel::kChancePlayerId);
  }

  Actions VisitChance(const open_spiel::ActionsAndProbs& outcomes) {
    Actions actions;
    actions.reserve(outcomes.size());
    double sum = 0;
    for (const auto& [action, probability] : outcomes) {
      if (action < 0 || !(probability >= 0)) throw Refusal{"a chance outcome or its probability is negative"};
      actions.push_back(action);
      columns_->probabilities.push_back(probability);
      sum += probability;
    }
    if (!(std::abs(sum - 1) <= kHalfTolerance)) throw Refusal{"chance probabilities do not sum to 1"};
    if (HasDuplicates(actions)) throw Refusal{"a chance outcome occurs twice"};
    columns_->num_outcomes.push_back(actions.size());
    Append(&columns_->outcomes, actions);
    Record(open_spiel::kChancePlayerId);
    return actions;
  }

  Actions VisitDecision(const State& state, int player) {
    const std::string key = state.InformationStateString(player);
    Actions actions = state.LegalActions();
    const size_t hash = Infostates::Hash(player, key);
    uint32_t number = infostates_.Find(hash, player, key);
    if (number == kNone) {
      CheckNew(state, player, key, actions);
      number = infostates_.Add({hash, arena_.Keep(key), &*lists_.insert(actions).first, player});
    } else if (*infostates_[number].actions != actions) {
      throw Refusal{"legal actions differ within an infostate"};
    }
    Record(number);
    return actions;
  }

  static void CheckNew(const State& state, int player, const std::string& key, const Actions& actions) {
    if (state.InformationStateString(player) != key) throw Refusal{"the information-state string differs between two calls"};
    if (actions.empty()) throw Refusal{"no legal actions"};
    if (HasDuplicates(actions)) throw Refusal{"a legal action occurs twice"};
    if (std::count(actions.begin(), actions.end(), open_spiel::kInvalidAction)) throw Refusal{"an action is invalid"};
  }

  const size_t thread_;
  Shared& shared_;
  int num_players_ = 0;
  int64_t unit_ = 0, block_ = 0;  // the next unit, and the claimed block
  Block* columns_ = nullptr;      // of the claimed block, between its first unit and its end
  int64_t unreported_ = 0;
  size_t reported_infostates_ = 0;
  Infostates infostates_;
  Arena arena_;
  std::set<Actions> lists_;
};

class Walk {
 public:
  Walk(const char* game, Roots roots, int threads, int64_t max_histories) : threads_(threads) {
    shared_.game = game;
    shared_.roots = std::move(roots);
    shared_.max_histories = max_histories;
  }

  Outcome Run() {
    Guard([this] {
      Divide(threads_, &shared_);
      for (int thread = 0; thread < threads_; ++thread) walkers_.push_back(std::make_unique<Walker>(thread, &shared_));
    });
    if (shared_.outcome == kComplete) RunWalkers();
    Guard([this] { Number(); });
    malloc_trim(0);
    return shared_.outcome;
  }

  void Stop() { shared_.Fail(kStopped, ""); }
  int64_t Counted() const { return shared_.counted; }
  int64_t NumInfostates() const { return shared_.infostates; }
  const char* Reason() const { return shared_.reason.c_str(); }

  void Sizes(int64_t* sizes) const {
    std::fill(sizes, sizes + 7, 0);
    for (const Block& block : shared_.blocks) {
      sizes[0] += block.nodes.size();
      sizes[1] += block.num_outcomes.size();
      sizes[2] += block.outcomes.size();
      sizes[3] += block.returns.size();
    }
    sizes[4] = Numbered().size();
    for (size_t number = 0; number < Numbered().size(); ++number) {
      sizes[5] += Numbered()[number].actions->size();
      sizes[6] += Numbered()[number].key.size();
    }
  }

  // Copies the record, block by block, and frees each block.
  void TakeHistories(int32_t* nodes, int32_t* num_outcomes, int64_t* outcomes, double* probabilities, double* returns) {
    for (Block& block : shared_.blocks) {
      if (walkers_.size() > 1) {
        for (int32_t& node : block.nodes) node = node < 0 ? node : numbers_[block.thread][node];
      }
      nodes = Drain(&block.nodes, nodes);
      num_outcomes = Drain(&block.num_outcomes, num_outcomes);
      outcomes = Drain(&block.outcomes, outcomes);
      probabilities = Drain(&block.probabilities, probabilities);
      returns = Drain(&block.returns, returns);
    }
  }

  void TakeInfostates(int8_t* players, int32_t* key_lengths, char* keys, int32_t* num_actions, int64_t* actions) const {
    for (size_t number = 0; number < Numbered().size(); ++number) {
      const Infostates::Entry& entry = Numbered()[number];
      players[number] = entry.player;
      key_lengths[number] = entry.key.size();
      keys = std::copy(entry.key.begin(), entry.key.end(), keys);
      num_actions[number] = entry.actions->size();
      actions = std::copy(entry.actions->begin(), entry.actions->end(), actions);
    }
  }

 private:
  // One thread numbers infostates in the order of the whole tree.
  const Infostates& Numbered() const { return walkers_.size() == 1 ? walkers_[0]->infostates() : merged_; }

  template <typename Work>
  void Guard(Work work) {
    try {
      if (!shared_.stop) work();
    } catch (const spiel_cfrplus::Stop&) {
    } catch (const Refusal& refusal) {
      shared_.Fail(kRefused, refusal.reason);
    } catch (const std::bad_alloc&) {
      shared_.Fail(kOutOfMemory, "");
    } catch (const std::exception& error) {  // OpenSpiel's errors, which pyspiel makes exceptions
      shared_.Fail(kRefused, error.what());
    } catch (...) {
      shared_.Fail(kRefused, "unknown exception");
    }
  }

  void RunWalkers() {
    std::vector<std::thread> others;
    for (size_t thread = 1; thread < walkers_.size(); ++thread) {
      try {
        others.emplace_back([this, thread] { Guard([this, thread] { walkers_[thread]->Run(); }); });
      } catch (const std::system_error&) {
        break;  // the system allows no more threads; those that run claim all blocks
      }
    }
    Guard([this] { walkers_[0]->Run(); });
    for (std::thread& other : others) other.join();
  }

  void Number() {
    if (walkers_.size() == 1) return;
    for (const auto& walker : walkers_) numbers_.emplace_back(walker->infostates().size());
    for (const Block& block : shared_.blocks) {
      const Infostates& own = walkers_[block.thread]->infostates();
      for (size_t number = block.first_new; number < block.end_new; ++number) {
        const Infostates::Entry& entry = own[number];
        uint32_t merged = merged_.Find(entry.hash, entry.player, entry.key);
        if (merged == kNone) {
          merged = merged_.Add(entry);
        } else if (*merged_[merged].actions != *entry.actions) {
          throw Refusal{"legal actions differ within an infostate"};
        }
        numbers_[block.thread][number] = merged;
      }
    }
  }

  const int threads_;
  Shared shared_;
  std::vector<std::unique_ptr<Walker>> walkers_;
  Infostates merged_;
  std::vector<std::vector<int32_t>> numbers_;  // of each thread's infostates in `merged_`
};

}  // namespace
}  // namespace spiel_cfrplus

using spiel_cfrplus::Walk;

extern "C" {

// Returns null if memory runs out. `root_lengths` are the numbers of actions of each root in `root_actions`.
Walk* walk_new(const char* game, int64_t num_roots, const int64_t* root_lengths, const int64_t* root_actions,
               const double* root_probabilities, int threads, int64_t max_histories) {
  try {
    spiel_cfrplus::Roots roots;
    roots.probabilities.assign(root_probabilities, root_probabilities + num_roots);
    for (int64_t root = 0; root < num_roots; ++root) {
      roots.histories.emplace_back(root_actions, root_actions + root_lengths[root]);
      root_actions += root_lengths[root];
    }
    return new Walk(game, std::move(roots), threads, max_histories);
  } catch (const std::exception&) {
    return nullptr;
  }
}

int walk_run(Walk* walk) { return walk->Run(); }
void walk_stop(Walk* walk) { walk->Stop(); }
int64_t walk_counted(const Walk* walk) { return walk->Counted(); }
int64_t walk_infostates(const Walk* walk) { return walk->NumInfostates(); }
const char* walk_reason(const Walk* walk) { return walk->Reason(); }
void walk_sizes(const Walk* walk, int64_t* sizes) { walk->Sizes(sizes); }

void walk_take_histories(Walk* walk, int32_t* nodes, int32_t* num_outcomes, int64_t* outcomes, double* probabilities,
                         double* returns) {
  walk->TakeHistories(nodes, num_outcomes, outcomes, probabilities, returns);
}

void walk_take_infostates(const Walk* walk, int8_t* players, int32_t* key_lengths, char* keys, int32_t* num_actions,
                          int64_t* actions) {
  walk->TakeInfostates(players, key_lengths, keys, num_actions, actions);
}

void walk_delete(Walk* walk) {
  delete walk;
  malloc_trim(0);
}

}  // extern "C"
