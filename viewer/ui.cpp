// SPDX-License-Identifier: Zlib
#include "ui.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "graph.h"

namespace {

constexpr float kPanelWidth = 292, kGraphHeight = 196;  // pixels
constexpr const char* kFont = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
constexpr float kFontSize = 15;
constexpr const char* kBackends[] = {"auto", "host", "cuda"};
constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                                    ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoTitleBar |
                                    ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus;

ImVec4 vectorOf(Colour c) {
  return {float(c.red) / 255, float(c.green) / 255, float(c.blue) / 255, 1};
}

void heading(const char* text) {
  ImGui::Dummy({0, 3});
  ImGui::TextColored({0.55f, 0.75f, 1, 1}, "%s", text);
  ImGui::Separator();
}

/// Draws a small coloured square. The next item follows on the same line.
void swatch(Colour colour) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + line * 0.25f},
                                            {at.x + 11, at.y + line * 0.25f + 11},
                                            ImGui::GetColorU32(vectorOf(colour)), 2);
  ImGui::Dummy({14, line});
  ImGui::SameLine();
}

void legend(Colour colour, const char* text) {
  swatch(colour);
  ImGui::TextUnformatted(text);
}

void applyStyle() {
  ImGui::StyleColorsDark();
  ImGuiStyle& style = ImGui::GetStyle();
  style.WindowRounding = style.WindowBorderSize = 0;
  style.FrameRounding = style.GrabRounding = 4;
  style.WindowPadding = {12, 10};
  style.ItemSpacing = {8, 5};
  style.Colors[ImGuiCol_WindowBg] = {0.085f, 0.095f, 0.115f, 1};
  style.Colors[ImGuiCol_FrameBg] = {0.17f, 0.19f, 0.23f, 1};
  style.Colors[ImGuiCol_Button] = {0.20f, 0.33f, 0.52f, 1};
  style.Colors[ImGuiCol_CheckMark] = {0.45f, 0.75f, 1, 1};
  style.Colors[ImGuiCol_Text] = {0.88f, 0.90f, 0.93f, 1};
}

/// A combo box of strings. Returns the index of the chosen one, or -1.
template <class Names>
int combo(const char* label, const std::string& current, const Names& names) {
  int chosen = -1, i = 0;
  ImGui::SetNextItemWidth(170);
  if (ImGui::BeginCombo(label, current.c_str())) {
    for (const auto& name : names) {
      if (ImGui::Selectable(std::string(name).c_str(), name == current)) chosen = i;
      ++i;
    }
    ImGui::EndCombo();
  }
  return chosen;
}

}  // namespace

Ui::Ui() {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // ImGui writes no settings file
  if (std::filesystem::exists(kFont)) io.Fonts->AddFontFromFileTTF(kFont, kFontSize);
  applyStyle();
  ImGui_ImplOpenGL3_Init("#version 330 core");
}

Ui::~Ui() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui::DestroyContext();
}

float Ui::scale() {
  const ImGuiIO& io = ImGui::GetIO();
  return io.BackendPlatformName == nullptr ? 1 : std::max(io.DisplayFramebufferScale.x, 1.0f);
}

Area Ui::sceneArea(int width, int height) const {
  if (isHidden) return {0, 0, width, height};
  const int left = int(kPanelWidth * scale()), below = int(kGraphHeight * scale());
  return {left, below, std::max(width - left, 1), std::max(height - below, 1)};
}

bool Ui::covers(float x, float y) const {
  if (isHidden) return false;
  if (ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)) return true;
  return x < kPanelWidth || y >= ImGui::GetIO().DisplaySize.y - kGraphHeight ||
         (x >= pickedLow_[0] && x < pickedHigh_[0] && y >= pickedLow_[1] && y < pickedHigh_[1]);
}

void Ui::draw(View& view, int width, int height) {
  ImGuiIO& io = ImGui::GetIO();
  if (io.BackendPlatformName == nullptr) io.DisplaySize = {float(width), float(height)};
  ImGui_ImplOpenGL3_NewFrame();
  ImGui::NewFrame();
  pickedHigh_[0] = pickedLow_[0];  // the list covers nothing unless it is drawn
  if (!isHidden) {
    drawPanel(view, io.DisplaySize.y);
    drawGraphs(view, io.DisplaySize.x, io.DisplaySize.y);
    if (view.picked() != nullptr) drawPicked(view, io.DisplaySize.x);
  }
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void Ui::drawPanel(View& view, float height) {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize({kPanelWidth, height});
  ImGui::Begin("panel", nullptr, kFixed);
  drawSimulation(view);
  drawBroadphase(view);
  drawOverlays(view);
  drawFigures(view);
  ImGui::End();
}

void Ui::drawSimulation(View& view) {
  SessionOptions options = view.session().options();
  const std::vector<std::string> names = sceneNames();
  heading("Scene");
  if (const int chosen =
          combo("##scene", options.recording.empty() ? options.scene : options.recording, names);
      chosen >= 0) {
    options.scene = names[std::size_t(chosen)];
    options.recording.clear();
    options.objects = 0;
    view.restart(options);
  }
  ImGui::SameLine();
  if (ImGui::Button("restart")) view.restart(view.session().options());
  ImGui::PushTextWrapPos();
  ImGui::TextDisabled("%s", options.recording.empty() ? findScene(options.scene.c_str())->stresses
                                                      : "recorded boxes");
  ImGui::PopTextWrapPos();
  if (ImGui::Button(view.isPaused ? "run" : "pause", {76, 0})) view.isPaused = !view.isPaused;
  ImGui::SameLine();
  if (ImGui::Button("step", {76, 0})) {
    view.isPaused = true;
    view.step();
  }
  ImGui::SameLine();
  if (ImGui::Button("shoot", {76, 0})) wantsShot = true;
}

void Ui::drawBroadphase(View& view) {
  const SessionOptions& options = view.session().options();
  if (!isDragging_) wanted_ = options.finder;
  heading("Broad phase");
  const std::vector<std::string> names = view.session().broadphases();
  if (const int chosen = combo("##broadphase", options.broadphase, names); chosen >= 0)
    view.swap(names[std::size_t(chosen)], options.finder);
  if (options.broadphase == "gpu-lbvh") {
    const int chosen = combo("backend", kBackends[int(options.finder.backend)], kBackends);
    if (chosen >= 0) {
      wanted_.backend = lbvh::Backend(chosen);
      view.swap(options.broadphase, wanted_);
    }
    const int cores = int(std::max(1u, std::thread::hardware_concurrency()));
    ImGui::SetNextItemWidth(170);
    ImGui::SliderInt("threads", &wanted_.threads, 0, cores,
                     wanted_.threads == 0 ? "all cores" : "%d");
    isDragging_ = ImGui::IsItemActive();
    if (ImGui::IsItemDeactivatedAfterEdit()) view.swap(options.broadphase, wanted_);
  }
  ImGui::PushTextWrapPos();
  ImGui::TextDisabled("%s", spaceOf(view.session().world().broadphase()).details.c_str());
  if (!view.error().empty())
    ImGui::TextColored(vectorOf(colours::removedPair), "%s", view.error().c_str());
  ImGui::PopTextWrapPos();
}

void Ui::drawOverlays(View& view) {
  OverlaySwitches& switches = view.switches;
  heading("Overlays");
  for (const OverlayRow& row : overlayRows()) {
    ImGui::Checkbox(row.legend, &(switches.*row.isOn));
    if (!(switches.*row.isOn)) continue;
    ImGui::Indent(26);
    if (row.isOn == &OverlaySwitches::boxes) legend(colours::box, "one box per object");
    if (row.isOn == &OverlaySwitches::tree) {
      ImGui::SetNextItemWidth(140);
      ImGui::SliderInt("level", &switches.treeLevel, 0, kMaxTreeLevel);
    }
    if (row.isOn == &OverlaySwitches::pairs) {
      legend(colours::touchingPair, "in contact");
      legend(colours::nearPair, "only the boxes overlap");
    }
    if (row.isOn == &OverlaySwitches::changes) {
      legend(colours::addedPair, "added");
      ImGui::SameLine();
      legend(colours::removedPair, "removed");
    }
    if (row.isOn == &OverlaySwitches::oversized)
      legend(colours::oversizedBox,
             fmt::format("infinite or giant: {}", view.overlays().oversizedBoxes()).c_str());
    ImGui::Unindent(26);
  }
}

void Ui::drawFigures(View& view) {
  heading("Objects");
  legend(colours::active, "active");
  ImGui::SameLine(100);
  legend(colours::sleeping, "asleep");
  ImGui::SameLine(188);
  legend(colours::fixed, "static");
  const StepRecord* last = view.session().history().last();
  ImGui::Text("step %d", view.session().steps());
  ImGui::SameLine(100);
  ImGui::Text("%d objects", view.session().world().objects());
  ImGui::Text("%d pairs", view.session().world().pairs());
  ImGui::SameLine(100);
  ImGui::Text("%.1f ms a step", last != nullptr ? last->times.step : 0);
}

void Ui::drawGraphs(View& view, float width, float height) {
  ImGui::SetNextWindowPos({kPanelWidth, height - kGraphHeight});
  ImGui::SetNextWindowSize({width - kPanelWidth, kGraphHeight});
  ImGui::Begin("graphs", nullptr, kFixed);
  const History& history = view.session().history();
  const int last = view.session().steps();
  const float wide = (ImGui::GetContentRegionAvail().x - 2 * 12) / 3, high = kGraphHeight - 20;
  drawGraph("Parts of a step [ms]", history, last, stepSeries(), true, wide, high);
  ImGui::SameLine(0, 12);
  drawGraph("Stages of gpu-lbvh [ms]", history, last, stageSeries(), true, wide, high);
  ImGui::SameLine(0, 12);
  drawGraph("Pairs", history, last, pairSeries(), false, wide, high);
  ImGui::End();
}

void Ui::drawPicked(View& view, float width) {
  const btCollisionObject& object = *view.picked();
  ImGui::SetNextWindowPos({width - 262, 12});
  ImGui::SetNextWindowSize({250, 0});
  ImGui::SetNextWindowBgAlpha(0.85f);
  ImGui::Begin("picked", nullptr, kFixed);
  const btVector3& place = object.getWorldTransform().getOrigin();
  heading(fmt::format("Object {}: {}", object.getWorldArrayIndex(),
                      object.getCollisionShape()->getName())
              .c_str());
  ImGui::Text("at %.1f, %.1f, %.1f m; %s", double(place.x()), double(place.y()), double(place.z()),
              object.isStaticObject() ? "static"
              : object.isActive()     ? "active"
                                      : "asleep");
  ImGui::Text("overlapping pairs: %zu", view.partners().size());
  std::size_t shown = 0;
  for (const Partner& partner : view.partners()) {
    if (++shown > 12) {
      ImGui::TextDisabled("and %zu more", view.partners().size() - 12);
      break;
    }
    legend(partner.contacts != 0 ? colours::touchingPair : colours::nearPair,
           fmt::format("{} {}: {}", partner.object->isStaticObject() ? "static" : "object",
                       partner.object->getWorldArrayIndex(),
                       partner.contacts == 0   ? "no contact"
                       : partner.contacts == 1 ? "1 contact"
                                               : fmt::format("{} contacts", partner.contacts))
               .c_str());
  }
  const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  pickedLow_[0] = low.x;
  pickedLow_[1] = low.y;
  pickedHigh_[0] = low.x + size.x;
  pickedHigh_[1] = low.y + size.y;
  ImGui::End();
}
