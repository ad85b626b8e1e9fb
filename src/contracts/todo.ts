export const todoStatuses = ["pending", "in_progress", "completed"] as const;
export type TodoStatus = (typeof todoStatuses)[number];

/** One entry of the list (spec/todo §1). */
export interface TodoItem {
  readonly content: string;
  readonly status: TodoStatus;
}

export interface TodoCounts {
  readonly pending: number;
  readonly inProgress: number;
  readonly completed: number;
}
